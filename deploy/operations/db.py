"""``resolute db upgrade | current``: the schema of the database, changed by one Job instead of by every service."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Awaitable, Callable
from typing import Final

from deploy.command_line import Commands, behind_the_command
from deploy.operations.settings import add_settings_argument, load_settings
from libs.db.availability import retry_until_available
from libs.db.engine import DatabaseSettings, address
from libs.db.failures import may_be_starting
from libs.db.migrate import Schema, schema_of, upgrade

OUTDATED: Final = 3


def add_parser(commands: Commands) -> None:
    of_db = commands.add_parser("db", description=__doc__, parents=[behind_the_command()])
    actions = of_db.add_subparsers(required=True, metavar="upgrade | current")
    apply = actions.add_parser("upgrade", help="apply the migrations that are missing; any number may do so at once")
    look = actions.add_parser("current", help=f"print the schema; exit code {OUTDATED} when migrations are missing")
    for parser, run in ((apply, _upgrade), (look, _current)):
        add_settings_argument(parser)
        parser.set_defaults(run=run)


def _upgrade(arguments: Namespace) -> int:
    schema = asyncio.run(_when_it_answers(load_settings(arguments, log_level="info").database, upgrade))
    if schema.is_outdated:
        print(f"the schema was {_name(schema.found)}, and is {schema.newest} now")
    else:
        print(_as_it_is(schema))
    return 0


def _current(arguments: Namespace) -> int:
    schema = asyncio.run(_when_it_answers(load_settings(arguments).database, schema_of))
    print(_as_it_is(schema))
    return OUTDATED if schema.is_outdated else 0


async def _when_it_answers(settings: DatabaseSettings, ask: Callable[[str], Awaitable[Schema]]) -> Schema:
    """Raises Unavailable when the database does not answer within ``connect_timeout_s``."""
    return await retry_until_available(
        lambda: ask(address(settings)), timeout_s=settings.connect_timeout_s, is_transient=may_be_starting
    )


def _as_it_is(schema: Schema) -> str:
    if schema.is_outdated:
        return f"the schema is {_name(schema.found)}; this release needs {schema.newest}: resolute db upgrade"
    if not schema.is_known:
        return f"the schema is {schema.found}, of a newer release than this one, whose newest is {schema.newest}"
    return f"the schema is {schema.found}, as this release needs it"


def _name(revision: str | None) -> str:
    return revision or "missing"
