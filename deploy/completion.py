"""``resolute completion``, and what shells with its script are answered when somebody presses Tab.

The script starts ``resolute`` anew for each answer, with the line in its environment; no subcommand is run then.
Source: https://kislyuk.github.io/argcomplete/.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from typing import Final

import argcomplete
from argcomplete.shell_integration import shellcode

from deploy.command_line import Commands, behind_the_command

SHELLS: Final = ("bash", "zsh", "fish")


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser(
        "completion",
        help="print the script by which a shell completes resolute",
        description="Print the script by which a shell completes resolute. In bash and zsh, "
        'eval "$(resolute completion SHELL)" reads it; fish finds it in ~/.config/fish/completions/resolute.fish.',
        parents=[behind_the_command()],
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads it")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    print(shellcode(["resolute"], shell=arguments.shell))
    return 0


def answer(modules: Mapping[str, str], parser_of: Callable[[str | None], argparse.ArgumentParser]) -> None:
    """Write what may follow on the line that the shell tells in the environment, and end the process.

    modules    of subcommands, by name
    parser_of  makes the parser with the arguments of the subcommands in a module
    """
    # Words with quotes may be half typed; subcommands have none.
    words = os.environ.get("COMP_LINE", "").split()[1:]
    parser = parser_of(next((modules[word] for word in words if word in modules), None))
    argcomplete.autocomplete(parser, always_complete_options=False)
