"""Hands tables, sequences, routines and types of the schema over to a role, while services go on using them.

Each object is a transaction of its own that waits for its lock for a moment only: services of the release before wait
no longer than that behind it, and no two of its locks can be part of a deadlock. Whoever is killed in the middle leaves
objects of both owners, both of whom may use all of them; the next one goes on.
"""

from __future__ import annotations

from typing import Any, Final

import asyncpg
import structlog

from libs.errors import FailedPrecondition
from libs.retry import every, with_retry

log = structlog.get_logger()

WAITS_FOR_LOCK: Final = "2s"
_PAUSE_S: Final = 3.0
_PATIENCE_S: Final = 1200.0
"""For one object: a backup reads the table that long."""
_GRANTS: Final = """
SELECT format(statement, current_schema(), $1::text, current_database()) FROM unnest(ARRAY[
    'GRANT CONNECT, TEMPORARY ON DATABASE %3$I TO %2$I',
    'GRANT USAGE, CREATE ON SCHEMA %1$I TO %2$I',
    'GRANT ALL ON ALL TABLES IN SCHEMA %1$I TO %2$I',
    'GRANT ALL ON ALL SEQUENCES IN SCHEMA %1$I TO %2$I',
    'GRANT ALL ON ALL ROUTINES IN SCHEMA %1$I TO %2$I',
    -- What services of the release before still make.
    'ALTER DEFAULT PRIVILEGES IN SCHEMA %1$I GRANT ALL ON TABLES TO %2$I',
    'ALTER DEFAULT PRIVILEGES IN SCHEMA %1$I GRANT ALL ON SEQUENCES TO %2$I'
]) AS statement
"""
_SCHEMA: Final = """
SELECT format(statement, current_schema(), $1::text, current_database()) FROM pg_roles, unnest(
    -- Only a superuser may give a schema to somebody who might not have made one.
    CASE WHEN rolsuper THEN ARRAY[]::text[] ELSE ARRAY['GRANT CREATE ON DATABASE %3$I TO %2$I'] END
    || ARRAY['ALTER SCHEMA %1$I OWNER TO %2$I']
) AS statement
WHERE rolname = current_user
"""
_OWNER_OF_SCHEMA: Final = "SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = current_schema()"
_OBJECTS: Final = """
SELECT format('ALTER %s %s OWNER TO %I', kind, name, $1::text) FROM (
    SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind, oid::regclass::text AS name,
        oid, tableoid, relowner AS owner, relnamespace AS namespace
    FROM pg_class WHERE relkind IN ('r', 'p', 'S')
    UNION ALL
    SELECT 'ROUTINE', oid::regprocedure::text, oid, tableoid, proowner, pronamespace FROM pg_proc
    UNION ALL
    SELECT CASE typtype WHEN 'd' THEN 'DOMAIN' ELSE 'TYPE' END, oid::regtype::text, oid, tableoid, typowner,
        typnamespace
    FROM pg_type WHERE typtype IN ('d', 'e', 'r')
) AS object
WHERE namespace = current_schema()::regnamespace AND owner <> (SELECT oid FROM pg_roles WHERE rolname = $1)
    -- Sequences of columns follow their table, and what belongs to an extension stays with it.
    AND NOT EXISTS (
        SELECT FROM pg_depend WHERE classid = object.tableoid AND objid = object.oid AND objsubid = 0
            AND (deptype IN ('i', 'e') OR kind = 'SEQUENCE' AND deptype = 'a')
    )
ORDER BY name
"""


async def hand_over(connection: Any, role: str) -> int:
    """Make ``role`` the owner of the schema and of all that is in it; returns the number of objects that were not its.

    connection  of an administrator, outside of a transaction
    Raises FailedPrecondition when somebody uses one for so long that the patience is at its end.
    """
    handed_over = 0
    await connection.execute(f"SET lock_timeout = '{WAITS_FOR_LOCK}'")
    if await connection.fetchval(_OWNER_OF_SCHEMA) != role:
        await _grant(connection, role)
    while statements := await connection.fetch(_OBJECTS, role):
        for (statement,) in statements:
            handed_over += await _patiently(connection, statement)
    if await connection.fetchval(_OWNER_OF_SCHEMA) != role:
        async with connection.transaction():
            for (statement,) in await connection.fetch(_SCHEMA, role):
                await connection.execute(statement)
    return handed_over


async def _grant(connection: Any, role: str) -> None:
    """Before the first object changes its owner: what acts for one of them, such as a trigger, may use all of them."""
    async with connection.transaction():
        for (statement,) in await connection.fetch(_GRANTS, role):
            await connection.execute(statement)


async def _patiently(connection: Any, statement: str) -> int:
    try:
        await with_retry(
            lambda: connection.execute(statement),
            is_transient=lambda error: isinstance(error, asyncpg.LockNotAvailableError),
            on_retry=lambda error, attempt: log.info("database.handover_waits", statement=statement, error=str(error)),
            pause_s=every(_PAUSE_S),
            timeout_s=_PATIENCE_S,
        )
    except asyncpg.LockNotAvailableError as error:
        raise FailedPrecondition(
            f"{statement}: somebody has used it for {_PATIENCE_S / 60:.0f} minutes; end that, and try again"
        ) from error
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedObjectError):
        return 0  # a service deleted an old partition meanwhile
    return 1
