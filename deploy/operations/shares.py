"""``resolute shares``: what users, groups and workspaces weigh where they share a pool."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import Any, Final

from deploy.command_line import Commands, behind_the_command
from deploy.operations.master import add_master_arguments, calling
from deploy.terminal import in_a_line, in_columns
from libs.errors import FailedPrecondition

_PATH: Final = "/api/v1/resolute/shares"
_SCOPES: Final = ("user", "group", "workspace")


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser("shares", description=__doc__, parents=[behind_the_command()])
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    listing = actions.add_parser(
        "list", help="weights that concern you; of administrators all", parents=[behind_the_command()]
    )
    listing.add_argument("--json", action="store_true", help="as the api says it")
    listing.set_defaults(run=_list)
    using = actions.add_parser(
        "use", help="what was used of pools that remember it, and what shares get now", parents=[behind_the_command()]
    )
    using.add_argument("--json", action="store_true", help="as the api says it")
    using.set_defaults(run=_use)
    setting = actions.add_parser("set", help="set a weight, or change it", parents=[behind_the_command()])
    _add_holder(setting)
    setting.add_argument("--weight", type=float, required=True, help="greater than 0; who has none weighs 1")
    setting.set_defaults(run=_set)
    removing = actions.add_parser("delete", help="remove a weight", parents=[behind_the_command()])
    _add_holder(removing)
    removing.set_defaults(run=_delete)
    for each in (listing, using, setting, removing):
        add_master_arguments(each)


def _add_holder(parser: ArgumentParser) -> None:
    parser.add_argument("scope", choices=_SCOPES, help="whose weight it is")
    parser.add_argument("name", help="of the user, group or workspace")


def _list(arguments: Namespace) -> int:
    with calling(arguments) as master:
        shares = master.call("GET", _PATH)["shares"]
    for line in [json.dumps(shares, indent=2)] if arguments.json else as_lines(shares):
        print(line)
    return 0


def _use(arguments: Namespace) -> int:
    with calling(arguments) as master:
        used = master.call("GET", _PATH)["used"]
    for line in [json.dumps(used, indent=2)] if arguments.json else use_as_lines(used):
        print(line)
    return 0


def _set(arguments: Namespace) -> int:
    wanted = {"scope": arguments.scope, "name": arguments.name, "weight": arguments.weight}
    with calling(arguments) as master:
        print(*as_lines([master.call("PUT", _PATH, wanted)["share"]]), sep="\n")
    return 0


def _delete(arguments: Namespace) -> int:
    meant = (arguments.scope, arguments.name.lower())
    with calling(arguments) as master:
        shares = master.call("GET", _PATH)["shares"]
        found = [one["id"] for one in shares if (one["scope"], one["name"].lower()) == meant]
        if not found:
            raise FailedPrecondition("there is no such weight; `resolute shares list` shows those that there are")
        for ident in found:
            master.call("DELETE", f"{_PATH}/{ident}")
    return 0


def as_lines(shares: Sequence[Mapping[str, Any]]) -> list[str]:
    """A table: whose weight, how much, and who has set it."""
    return in_columns([("FOR", "WEIGHT", "SET BY"), *map(_row, shares)])


def _row(share: Mapping[str, Any]) -> tuple[str, ...]:
    who = f"{share['scope']} {in_a_line(share['name'])}"
    return who, f"{share['weight']:g}", in_a_line(share["setBy"]) or "-"


def use_as_lines(used: Sequence[Mapping[str, Any]]) -> list[str]:
    """A table: whose share of which pool, its weight, the slots that it has used on average, and those that it would
    get now if all wanted everything."""
    return in_columns([("POOL", "SHARE", "WEIGHT", "USED", "GETS"), *map(_use_row, used)])


def _use_row(one: Mapping[str, Any]) -> tuple[str, ...]:
    path = " / ".join(f"{part['scope']} {in_a_line(part['name'])}" for part in one["share"])
    slots = (f"{one[key]:.2f}" for key in ("usedSlots", "effectiveSlots"))
    return in_a_line(one["resourcePool"]), path, f"{one['weight']:g}", *slots
