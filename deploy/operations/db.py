"""``resolute db upgrade | current | password | settle-metrics``: the database as a release needs it.

One Job changes it instead of every service.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import asyncpg

from deploy.command_line import Commands, behind_the_command
from deploy.operations.settings import (
    DATABASE_VARIABLE,
    FORMER_VARIABLE,
    add_settings_argument,
    load_settings,
    names_database,
)
from libs.db.availability import retry_until_available
from libs.db.connecting.settings import DatabaseSettings, address
from libs.db.failures import may_be_starting
from libs.db.migrate import upgrade
from libs.db.schema.found import Schema, schema_of
from libs.db.services_role.changed_password import change_password
from libs.db.services_role.role import ServicesRole, provide_role
from libs.errors import FailedPrecondition, Unavailable

if TYPE_CHECKING:
    from services.api.metrics.rows.settling import Settled

_T = TypeVar("_T")
OUTDATED: Final = 3
_START_IT: Final = (
    f"start that of this machine with `resolute up --only-servers`, or name another with {DATABASE_VARIABLE}"
)


def add_parser(commands: Commands) -> None:
    of_db = commands.add_parser("db", description=__doc__, parents=[behind_the_command()])
    actions = of_db.add_subparsers(required=True, metavar="upgrade | current | password | settle-metrics")
    apply = actions.add_parser("upgrade", help="apply the migrations that are missing; any number may do so at once")
    look = actions.add_parser("current", help=f"print the schema; exit code {OUTDATED} when migrations are missing")
    password = actions.add_parser(
        "password", help=f"give the role of {DATABASE_VARIABLE} its password, logged in as {FORMER_VARIABLE} says"
    )
    settle = actions.add_parser(
        "settle-metrics", help="before services of the release before start again: write summaries where they read them"
    )
    for parser, run in (
        (apply, _upgrade),
        (look, _current),
        (password, _password),
        (settle, _settle),
    ):
        add_settings_argument(parser)
        parser.set_defaults(run=run)


def _upgrade(arguments: Namespace) -> int:
    settings = load_settings(arguments, log_level="info")
    ask = partial(_upgrade_as, settings.services_role, settings.former_database_url)
    schema = asyncio.run(_when_it_answers(arguments, settings.database, ask))
    if schema.is_outdated:
        print(f"the schema was {_name(schema.found)}, and is {schema.newest} now")
    else:
        print(_as_it_is(schema))
    return 0


async def _upgrade_as(role: ServicesRole, former: str | None, url: str) -> Schema:
    """Apply migrations as the role that services have, if there is one: what they make is then its own."""
    if former is not None:
        await change_password(url, former)
    return await upgrade(url if role.user is None else await provide_role(url, role))


def _password(arguments: Namespace) -> int:
    """A database that does not answer is left as it is: this runs before a rollback, which may be what repairs it."""
    settings = load_settings(arguments, log_level="info")
    former = settings.former_database_url
    if former is None:
        raise FailedPrecondition(f"{FORMER_VARIABLE} is missing: the URL of the database with the password that it has")
    try:
        changed = asyncio.run(_when_it_answers(arguments, settings.database, partial(_change_from, former)))
    except Unavailable as error:
        print(f"the password is left as it is: {error}")
        return 0
    print("the password was changed in the database" if changed else "the password opens the database already")
    return 0


async def _change_from(former: str, url: str) -> bool:
    return await change_password(url, former)


def _current(arguments: Namespace) -> int:
    schema = asyncio.run(_when_it_answers(arguments, load_settings(arguments).database, schema_of))
    print(_as_it_is(schema))
    return OUTDATED if schema.is_outdated else 0


def _settle(arguments: Namespace) -> int:
    settled = asyncio.run(_when_it_answers(arguments, load_settings(arguments).database, _settle_all))
    if settled.left:
        print(f"summaries of {settled.count} trials were written, those of these were not: {_listed(settled.left)}")
        return 1
    print(f"summaries of {settled.count} trials were written; all others were up to date")
    return 0


def _listed(idents: list[int]) -> str:
    return ", ".join(map(str, idents))


async def _settle_all(url: str) -> Settled:
    from services.api.metrics.rows.settling import settle_all  # noqa: PLC0415  # no other action needs the api

    connection = await asyncpg.connect(url)
    try:
        return await settle_all(connection)
    finally:
        await connection.close()


async def _when_it_answers(arguments: Namespace, settings: DatabaseSettings, ask: Callable[[str], Awaitable[_T]]) -> _T:
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
