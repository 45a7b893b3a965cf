"""``resolute audit``: who changed what, the newest last, from the database of an installation."""

from __future__ import annotations

import asyncio
import json
from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from deploy.command_line import Commands, behind_the_command
from deploy.operations.settings import add_settings_argument, load_settings
from libs.db.audit.search import AuditFilter, find_records
from libs.db.engine import DatabaseSettings, connect_database
from libs.instants import parse_instant


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser("audit", description=__doc__, parents=[behind_the_command()])
    parser.add_argument("--user", default="", help="by whom")
    parser.add_argument("--action", default="", help="part of method and path, as in 'DELETE' or '/users'")
    parser.add_argument("--entity", default="", help="kind of what was changed, as in events: experiment, user ...")
    parser.add_argument("--id", default="", help="its id")
    parser.add_argument("--request", default="", help="id of a request, as in log lines and X-Request-Id")
    parser.add_argument("--since", type=_moment, help="from this time on, as in 2026-01-31T12:00:00Z")
    parser.add_argument("--before", type=_moment, help="before this time")
    parser.add_argument("--last", type=int, default=100, help="how many at most (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    add_settings_argument(parser)
    parser.set_defaults(run=_run)


def _moment(text: str) -> datetime:
    try:
        return parse_instant(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


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
    for record in reversed(records):
        print(json.dumps(record, default=str) if arguments.json else as_line(record))
    return 0


async def _find(settings: DatabaseSettings, wanted: AuditFilter, last: int) -> list[dict[str, Any]]:
    async with connect_database(settings) as db, db.read() as connection:
        return [dict(row) for row in await find_records(connection, wanted, offset=0, limit=max(last, 0))]


def as_line(record: Mapping[str, Any]) -> str:
    """``time user address action target details: objects``"""
    moment: datetime = record["recorded_at"]
    method, _, path = record["action"].partition(" ")
    for name, value in record["target"].items():
        path = path.replace(f"{{{name}}}", value).replace(f"{{{name}:path}}", value)
    changed = [f"{each['entity']} {each['id']} {each['what']}" for each in record["changed"]]
    details = [f"{name}={json.dumps(value)}" for name, value in record["details"].items()]
    where = f"{record['username'] or '-'}@{record['address'] or '-'}"
    text = " ".join([moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), where, method, path, *details])
    return f"{text}: {', '.join(changed)}" if changed else text
