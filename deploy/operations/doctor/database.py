"""The database: whether it answers, has the schema that this release needs, and knows what time it is."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Final

import asyncpg

from deploy.operations.doctor.clocks import clock_difference
from deploy.operations.doctor.findings import Finding, ok, problem, warning
from libs.clock import Clock
from libs.db.connecting.settings import DatabaseSettings, address
from libs.db.failures import DRIVER_ERRORS
from libs.db.schema.found import Schema, schema_of
from libs.db.storage_probe import LITTLE_MEMORY, WRITE_FILE

PART: Final = "database"
ANSWERS_WITHIN_S: Final = 5.0
_SUPERUSER: Final = "SELECT rolname FROM pg_roles WHERE rolname = current_user AND rolsuper"


async def check_database(settings: DatabaseSettings, clock: Clock) -> list[Finding]:
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            before = clock.now()
            theirs = await _time_there(address(settings))
            ours = before + (clock.now() - before) / 2
            superuser = await _superuser(address(settings))
            schema = await schema_of(address(settings))
            storing = await _try_to_store(address(settings))
    except (OSError, TimeoutError, *DRIVER_ERRORS) as error:
        remedy = "see that PostgreSQL runs, and that database.url and its password are right"
        return [problem(PART, f"does not answer: {error or 'no answer in time'}", remedy=remedy)]
    return [
        ok(PART, "answers"),
        storing,
        about_schema(schema),
        about_role(superuser),
        clock_difference(PART, theirs=theirs, ours=ours),
    ]


async def _time_there(url: str) -> datetime:
    connection = await asyncpg.connect(url, timeout=ANSWERS_WITHIN_S)
    try:
        time: datetime = await connection.fetchval("SELECT clock_timestamp()")
        return time
    finally:
        await connection.close()


async def _superuser(url: str) -> str | None:
    """The name of the role that services have, if that is a superuser."""
    connection = await asyncpg.connect(url, timeout=ANSWERS_WITHIN_S)
    try:
        name: str | None = await connection.fetchval(_SUPERUSER)
        return name
    finally:
        await connection.close()


async def _try_to_store(url: str) -> Finding:
    connection = await asyncpg.connect(url, timeout=ANSWERS_WITHIN_S)
    try:
        async with connection.transaction():
            await connection.execute(LITTLE_MEMORY)
            await connection.execute(WRITE_FILE)
    except (OSError, *DRIVER_ERRORS) as error:
        remedy = "see that the disk of its data directory has space; all goes on by itself then"
        return problem(PART, f"does not store: {error}", remedy=remedy)
    finally:
        await connection.close()
    return ok(PART, "stores what it is given")


def about_role(superuser: str | None) -> Finding:
    if superuser is None:
        return ok(PART, "services are no superuser of it")
    remedy = (
        "give them a role of their own: db.servicesUser of the chart, elsewhere resolute db upgrade with "
        "RESOLUTE_SERVICES_ROLE__USER (docs/operations.md)"
    )
    return warning(PART, f"services connect as {superuser}, a superuser of the server", remedy=remedy)


def about_schema(schema: Schema) -> Finding:
    if schema.is_outdated:
        found = "no schema" if schema.found is None else f"the schema {schema.found}"
        return problem(PART, f"has {found}, and {schema.newest} is needed", remedy="run: resolute db upgrade")
    if not schema.is_known:
        says = f"has the schema {schema.found} of a newer release; the newest known here is {schema.newest}"
        return warning(PART, says, remedy="services of the release before work with it; upgrade them again")
    return ok(PART, f"has the schema {schema.found}")
