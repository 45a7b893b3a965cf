"""``resolute db upgrade | current``: the schema of the database, changed by one Job instead of by every service."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from deploy.command_line import Commands, behind_the_command
from deploy.operations.settings import DATABASE_VARIABLE, add_settings_argument, load_settings, names_database
from libs.db.availability import retry_until_available
from libs.db.engine import DatabaseSettings, address
from libs.db.failures import may_be_starting
from libs.db.migrate import Schema, schema_of, upgrade
from libs.db.services_role.role import ServicesRole, provide_role
from libs.errors import Unavailable

OUTDATED: Final = 3
_START_IT: Final = (
    f"start that of this machine with `resolute up --only-servers`, or name another with {DATABASE_VARIABLE}"
)


def add_parser(commands: Commands) -> None:
    of_db = commands.add_parser("db", description=__doc__, parents=[behind_the_command()])
    actions = of_db.add_subparsers(required=True, metavar="upgrade | current")
    apply = actions.add_parser("upgrade", help="apply the migrations that are missing; any number may do so at once")
    look = actions.add_parser("current", help=f"print the schema; exit code {OUTDATED} when migrations are missing")
    for parser, run in ((apply, _upgrade), (look, _current)):
        add_settings_argument(parser)
        parser.set_defaults(run=run)


def _upgrade(arguments: Namespace) -> int:
    settings = load_settings(arguments, log_level="info")
    ask = partial(_upgrade_as, settings.services_role)
    schema = asyncio.run(_when_it_answers(arguments, settings.database, ask))
    if schema.is_outdated:
        print(f"the schema was {_name(schema.found)}, and is {schema.newest} now")
    else:
        print(_as_it_is(schema))
    return 0


async def _upgrade_as(role: ServicesRole, url: str) -> Schema:
    """Apply migrations as the role that services have, if there is one: what they make is then its own."""
    return await upgrade(url if role.user is None else await provide_role(url, role))


def _current(arguments: Namespace) -> int:
    schema = asyncio.run(_when_it_answers(arguments, load_settings(arguments).database, schema_of))
    print(_as_it_is(schema))
    return OUTDATED if schema.is_outdated else 0


async def _when_it_answers(
    arguments: Namespace, settings: DatabaseSettings, ask: Callable[[str], Awaitable[Schema]]
) -> Schema:
    """Raises Unavailable when the database does not answer within ``connect_timeout_s``.

    That of this machine is started by ``resolute up``, which returns when it answers: it is not waited for.
    """
    is_named = names_database(arguments)
    try:
        return await retry_until_available(
            lambda: ask(address(settings)),
            timeout_s=settings.connect_timeout_s if is_named else 0,
            is_transient=may_be_starting,
        )
    except Unavailable as error:
        if is_named:
            raise
        raise Unavailable(f"{error}; {_START_IT}") from error


def _as_it_is(schema: Schema) -> str:
    if schema.is_outdated:
        return f"the schema is {_name(schema.found)}; this release needs {schema.newest}: resolute db upgrade"
    if not schema.is_known:
        return f"the schema is {schema.found}, of a newer release than this one, whose newest is {schema.newest}"
    return f"the schema is {schema.found}, as this release needs it"


def _name(revision: str | None) -> str:
    return revision or "missing"
