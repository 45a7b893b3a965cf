"""Brings a database to the newest schema. Safe to call from several services at once.

A schema that this release does not know is of a newer one, which has seen to it that the release before can work with
it (CONTRIBUTING.md, migrations): it is left as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from libs.db.availability import retry_until_available
from libs.db.connecting.settings import DatabaseSettings, address
from libs.db.failures import is_connection_failure
from libs.db.schema.apart import apply_apart
from libs.db.schema.found import Schema, revisions, schema_of, schema_when_nobody_migrates
from libs.errors import Unavailable
from libs.retry import every, with_retry

log = structlog.get_logger()

NEWEST: Final = "head"
_LOOK_EVERY_S: Final = 1.0


class SchemaOutdated(Unavailable):
    """The database lacks migrations, and it is for somebody else to apply them."""


async def provide_schema(settings: DatabaseSettings) -> None:
    """Return when the database has the schema that a service needs: brought there, or waited for.

    Raises Unavailable when that takes longer than ``connect_timeout_s``.
    """
    if settings.migrate:
        await retry_until_available(
            lambda: _upgrade(address(settings), NEWEST, apply_apart), timeout_s=settings.connect_timeout_s
        )
    else:
        await with_retry(
            lambda: _expect_schema(settings),
            is_transient=lambda error: isinstance(error, SchemaOutdated) or is_connection_failure(error),
            on_retry=lambda error, attempt: log.info("database.waiting", error=str(error)),
            pause_s=every(_LOOK_EVERY_S),
            timeout_s=settings.connect_timeout_s,
        )


async def upgrade(url: str, *, to: str = NEWEST) -> Schema:
    """Apply the migrations that ``url`` lacks; concurrent callers wait for the first. Returns what it was before."""
    return await _upgrade(url, to, _apply_here)


async def _upgrade(url: str, to: str, apply: Callable[[str, str], Awaitable[object]]) -> Schema:
    wanted = revisions()[-1] if to == NEWEST else to
    schema = await schema_of(url)
    if schema.is_known and schema.found != wanted:
        # Those who come while somebody migrates wait without what that takes.
        schema = await schema_when_nobody_migrates(url)
    if schema.is_known and schema.found != wanted:
        await apply(url, wanted)
        log.info("database.upgraded", found=schema.found, to=wanted)
    if not schema.is_known:
        log.info("database.schema_of_newer_release", found=schema.found, newest_known=schema.newest)
    return schema


async def _apply_here(url: str, to: str) -> None:
    from libs.db.schema.applying import apply_migrations  # noqa: PLC0415  seldom is there something to do

    await apply_migrations(url, to)


async def _expect_schema(settings: DatabaseSettings) -> None:
    schema = await schema_of(address(settings))
    if schema.is_outdated:
        raise SchemaOutdated(
            f"the database has the schema {schema.found or 'of nothing'}, and {schema.newest} is needed; run: resolute "
            "db upgrade"
        )
