"""Which schema a database has, and which one this release brings it to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import asyncpg
from msgspec import Struct

from libs.db.connecting.settings import asyncpg_url

MIGRATION_LOCK: Final = 0x5E50_107A
"""Key of the advisory lock of whoever changes the schema; any number that nothing else uses."""
FORMER_LOCK: Final = 0x5E50_1074
"""The key that releases before had for it. The function ``number_change`` of the database has the same one, so whoever
holds it keeps transactions from ending that change projects, workspaces or models."""
LAST_OF_FORMER_LOCK: Final = "0008"
"""The last migration that a release may apply which knows the former key alone."""
SCRIPTS: Final = Path(__file__).parents[1] / "migrations"
IS_THERE: Final = "SELECT to_regclass('alembic_version') IS NOT NULL"
FOUND: Final = "SELECT version_num FROM alembic_version"


class Schema(Struct, frozen=True, kw_only=True):
    """How a database stands to this release."""

    found: str | None
    """The revision of the database; None when it has no schema yet."""
    newest: str
    """The revision that this release brings it to."""
    is_known: bool
    """Whether this release has the migration that leads to ``found``; otherwise a newer one was here."""

    @property
    def is_outdated(self) -> bool:
        return self.is_known and self.found != self.newest


def schema_as_found(found: str | None) -> Schema:
    """What a revision that was read from a database means."""
    known = revisions()
    return Schema(found=found, newest=known[-1], is_known=found is None or found in known)


async def schema_of(url: str) -> Schema:
    """The schema of ``url``, which is left as it is."""
    async with _connected(url) as connection:
        return await _look(connection)


async def schema_when_nobody_migrates(url: str) -> Schema:
    """The schema of ``url`` once those who change it at this moment have done so."""
    async with _connected(url) as connection:
        await connection.execute("SELECT pg_advisory_lock($1)", MIGRATION_LOCK)
        return await _look(connection)


@asynccontextmanager
async def _connected(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(asyncpg_url(url))
    try:
        yield connection
    finally:
        await connection.close()


async def _look(connection: Any) -> Schema:
    is_there = await connection.fetchval(IS_THERE)
    return schema_as_found(await connection.fetchval(FOUND) if is_there else None)


def revisions() -> list[str]:
    """The migrations there are, in their order, which is that of their numbers: ``<revision>_<what>.py``."""
    return sorted(path.stem.partition("_")[0] for path in (SCRIPTS / "versions").rglob("[0-9]*.py"))
