"""``resolute audit``: who changed what, the newest last, from the database of an installation."""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from deploy.command_line import Commands, behind_the_command, past_moment
from deploy.operations.settings import add_settings_argument, load_settings
from deploy.terminal import colours, in_a_line, paint
from libs.db.audit.search import AuditFilter, find_records
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser("audit", description=__doc__, parents=[behind_the_command()])
    parser.add_argument("--user", default="", help="by whom")
    parser.add_argument("--action", default="", help="part of method and path, as in 'DELETE' or '/users'")
    parser.add_argument("--entity", default="", help="kind of what was changed, as in events: experiment, user ...")
    parser.add_argument("--id", default="", help="its id")
    parser.add_argument("--request", default="", help="id of a request, as in log lines and X-Request-Id")
    parser.add_argument(
        "--since", type=past_moment, metavar="TIME", help="from this time on, as in 2h, 7d or 2026-01-31T12:00:00Z"
    )
    parser.add_argument("--before", type=past_moment, metavar="TIME", help="before this time")
    parser.add_argument("--last", type=int, default=100, help="how many at most (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    add_settings_argument(parser)
    parser.set_defaults(run=_run)


def _run(arguments: Namespace) -> int:
    wanted = AuditFilter(
        username=arguments.user,
        action=arguments.action,
        entity=arguments.entity,
        entity_id=arguments.id,
        request_id=arguments.request,
        since=arguments.since,
        before=arguments.before,
    )
    records = asyncio.run(_find(load_settings(arguments).database, wanted, arguments.last))
    records.reverse()
    if arguments.json:
        lines = [json.dumps(record, default=str) for record in records]
    else:
        lines = as_lines(records, coloured=colours(sys.stdout))
    for line in lines:
        print(line)
    return 0


async def _find(settings: DatabaseSettings, wanted: AuditFilter, last: int) -> list[dict[str, Any]]:
    async with connect_database(settings) as db, db.read() as connection:
        return [dict(row) for row in await find_records(connection, wanted, offset=0, limit=max(last, 0))]


def as_lines(records: Sequence[Mapping[str, Any]], *, coloured: bool) -> list[str]:
    """``time  user  what was changed: as asked for  (request from address)``, times in the zone of this machine."""
    width = max((len(_user(record)) for record in records), default=0)
    return [_line(record, width, coloured=coloured) for record in records]


def _line(record: Mapping[str, Any], width: int, *, coloured: bool) -> str:
    moment: datetime = record["recorded_at"]
    time = paint(moment.astimezone().strftime("%Y-%m-%d %H:%M:%S"), "dim", coloured=coloured)
    changed = ", ".join(f"{each['entity']} {each['id']} {each['what']}" for each in record["changed"])
    done = ": ".join(filter(None, (changed, " ".join(_details(record["details"])))))
    user = paint(f"{_user(record):<{width}}", "bold", coloured=coloured)
    return "  ".join(filter(None, (time, user, done, f"({_request(record)})")))


def _user(record: Mapping[str, Any]) -> str:
    return in_a_line(record["username"]) if record["username"] else "-"


def _request(record: Mapping[str, Any]) -> str:
    """Method and path as they were called, from where, and by which task if it was one."""
    request = record["action"]
    for name, value in record["target"].items():
        request = request.replace(f"{{{name}}}", value).replace(f"{{{name}:path}}", value)
    where = f" from {record['address']}" if record["address"] else ""
    task = f" in allocation {record['allocation_id']}" if record["allocation_id"] else ""
    return f"{request}{where}{task}"


def _details(details: Mapping[str, Any]) -> list[str]:
    """What was asked for; of fields whose values are not kept, that they were there."""
    given = details.get("others")
    hidden = given if isinstance(given, list) else []
    said = {name: value for name, value in details.items() if name != "others" or not hidden}
    return [*(f"{name}={in_a_line(value)}" for name, value in said.items()), *(f"{name}=…" for name in hidden)]
