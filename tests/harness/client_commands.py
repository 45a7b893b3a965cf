"""Prints every command of the installed client with its options, as JSON; run by the interpreter beside ``det``.

{"options": [...], "commands": {name or alias: the same again}, "aliases": {alias: name}, "passes_on": whether what is
behind its first word is for another program}
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from determined import cli
from determined.cli.cli import all_args_description, make_parser
from determined.deploy import cli as deploy_cli


def tree(parser: argparse.ArgumentParser) -> dict[str, Any]:
    found: dict[str, Any] = {"options": [], "commands": {}, "aliases": {}, "passes_on": False}
    for action in parser._actions:
        found["options"] += action.option_strings
        found["passes_on"] |= action.nargs == argparse.REMAINDER
        if isinstance(action, argparse._SubParsersAction):
            found["commands"] |= {name: tree(each) for name, each in action.choices.items()}
            names: dict[int, str] = {}
            for name, each in action.choices.items():
                if names.setdefault(id(each), name) != name:
                    found["aliases"][name] = names[id(each)]
    return found


def tree_of(descriptions: Any) -> dict[str, Any]:
    parser = make_parser()
    cli.add_args(parser, descriptions)
    return tree(parser)


# The client itself does the same when the first word is `deploy`: nothing of it is imported otherwise.
everything = tree_of(all_args_description)
everything["commands"] |= tree_of([deploy_cli.args_description])["commands"]
print(json.dumps(everything))
