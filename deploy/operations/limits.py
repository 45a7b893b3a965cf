"""``resolute limits``: what users, groups and workspaces may hold, and what is left of it."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import Any, Final

from deploy.command_line import Commands, behind_the_command
from deploy.operations.master import add_master_arguments, calling
from deploy.terminal import in_a_line, in_columns
from libs.errors import FailedPrecondition

_PATH: Final = "/api/v1/resolute/limits"
_SCOPES: Final = ("user", "group", "workspace")
_EVERYBODY: Final = {"user": "each user without one", "workspace": "each workspace without one"}


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser("limits", description=__doc__, parents=[behind_the_command()])
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    listing = actions.add_parser(
        "list", help="those that concern you; of administrators all", parents=[behind_the_command()]
    )
    listing.add_argument("--pool", default="", help="only those that concern this resource pool")
    listing.add_argument("--json", action="store_true", help="as the api says it")
    listing.set_defaults(run=_list)
    setting = actions.add_parser("set", help="set one, or change it", parents=[behind_the_command()])
    _add_holder(setting)
    how_much = setting.add_mutually_exclusive_group(required=True)
    how_much.add_argument("--slots", type=int, help="slots that may be held at once")
    how_much.add_argument("--slot-hours", type=float, help="slot-hours that may be used in each period")
    setting.add_argument(
        "--enforce",
        choices=("wait", "preempt"),
        default="wait",
        help="whether only nothing new starts, or those leave that hold more (default: %(default)s)",
    )
    setting.set_defaults(run=_set)
    removing = actions.add_parser("delete", help="remove one", parents=[behind_the_command()])
    _add_holder(removing)
    removing.set_defaults(run=_delete)
    for each in (listing, setting, removing):
        add_master_arguments(each)


def _add_holder(parser: ArgumentParser) -> None:
    parser.add_argument("scope", choices=_SCOPES, help="for whom it is")
    parser.add_argument("name", nargs="?", default="", help="nobody named: for each that has no such limit of its own")
    parser.add_argument("--pool", default="", help="resource pool (default: all pools together)")
    parser.add_argument(
        "--per",
        choices=("day", "week", "month"),
        help="calendar period of slot-hours, in UTC; weeks begin on Monday (default: it is a limit of slots at once)",
    )


def _list(arguments: Namespace) -> int:
    with calling(arguments) as master:
        limits = master.call("GET", _PATH, resourcePool=arguments.pool)["limits"]
    for line in [json.dumps(limits, indent=2)] if arguments.json else as_lines(limits):
        print(line)
    return 0


def _set(arguments: Namespace) -> int:
    wanted = {
        "scope": arguments.scope,
        "name": arguments.name,
        "resourcePool": arguments.pool,
        "slots": arguments.slots,
        "slotHours": arguments.slot_hours,
        "period": arguments.per,
        "enforce": arguments.enforce,
    }
    with calling(arguments) as master:
        print(*as_lines([master.call("PUT", _PATH, wanted)["limit"]]), sep="\n")
    return 0


def _delete(arguments: Namespace) -> int:
    with calling(arguments) as master:
        limits = master.call("GET", _PATH)["limits"]
        found = [one["id"] for one in limits if _is_meant(one, arguments)]
        if not found:
            raise FailedPrecondition("there is no such limit; `resolute limits list` shows those that there are")
        for ident in found:
            master.call("DELETE", f"{_PATH}/{ident}")
    return 0


def _is_meant(limit: Mapping[str, Any], arguments: Namespace) -> bool:
    names = (limit["scope"], limit["name"].lower(), limit["resourcePool"], limit["period"])
    return names == (arguments.scope, arguments.name.lower(), arguments.pool, arguments.per)


def as_lines(limits: Sequence[Mapping[str, Any]]) -> list[str]:
    """A table: for whom, where, how much, what of it is used and left, and what happens to those who hold more."""
    return in_columns([("FOR", "POOL", "LIMIT", "USED", "LEFT", "ENFORCE", "SET BY"), *map(_row, limits)])


def _row(limit: Mapping[str, Any]) -> tuple[str, ...]:
    name = in_a_line(limit["name"])
    return (
        f"{limit['scope']} {name}" if name else _EVERYBODY[limit["scope"]],
        in_a_line(limit["resourcePool"]) or "all",
        _amount(limit),
        "-" if limit["used"] is None else f"{limit['used']:g}",
        "-" if limit["left"] is None else f"{limit['left']:g}",
        limit["enforce"],
        in_a_line(limit["setBy"]) or "-",
    )


def _amount(limit: Mapping[str, Any]) -> str:
    if limit["period"] is None:
        return "1 slot" if limit["slots"] == 1 else f"{limit['slots']} slots"
    return f"{limit['slotHours']:g} slot-hours a {limit['period']}"
