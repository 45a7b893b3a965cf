"""Makes the role that services connect as, and gives it the schema; what is so already is left as it is.

The role may log in once everything is its own, so services that start meanwhile wait for it.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final
from urllib.parse import quote

import asyncpg
import structlog
from msgspec import Struct

from libs.db.connecting.settings import asyncpg_url
from libs.db.schema.found import MIGRATION_LOCK
from libs.db.services_role.handover import hand_over
from libs.db.services_role.password import SALT_BYTES, scram_verifier
from libs.errors import FailedPrecondition
from libs.secret_files import read_secret

log = structlog.get_logger()

_CONNECTS_WITHIN_S: Final = 10.0
_ROLE: Final = "SELECT rolsuper, rolcreaterole, rolcreatedb FROM pg_roles WHERE rolname = $1"
_ADMINISTRATOR: Final = "SELECT rolname, rolsuper, rolcreaterole FROM pg_roles WHERE rolname = current_user"
_CREATE: Final = "CREATE ROLE %I NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS"
_LET_IN: Final = "ALTER ROLE %I LOGIN PASSWORD %L"
_JOIN: Final = "GRANT %I TO CURRENT_USER"
_SEARCH: Final = "ALTER ROLE %I IN DATABASE %I SET search_path = %I"
_USED_ELSEWHERE: Final = """
SELECT datname FROM pg_shdepend JOIN pg_database ON pg_database.oid = dbid
WHERE refclassid = 'pg_authid'::regclass AND refobjid = (SELECT oid FROM pg_roles WHERE rolname = $1)
    AND datname <> current_database() LIMIT 1
"""


class ServicesRole(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Role that services connect as, where the credentials of ``database`` are those of an administrator."""

    user: str | None = None
    """None where services connect with the credentials of ``database``."""
    password: str | None = None
    password_file: str | None = None
    """File with the password; wins."""

    def address(self, administrator: str) -> str | None:
        """The database at the URL ``administrator``, as this role; None where there is none. Raises OSError."""
        if self.user is None:
            return None
        password = self.secret()
        login = quote(self.user, safe="") + ("" if password is None else f":{quote(password, safe='')}")
        place, slash, rest = asyncpg_url(administrator).removeprefix("postgresql://").partition("/")
        return f"postgresql://{login}@{place.rpartition('@')[2]}{slash}{rest}"

    def secret(self) -> str | None:
        """The password. Raises OSError."""
        return self.password if self.password_file is None else read_secret(self.password_file)


async def provide_role(administrator: str, role: ServicesRole) -> str:
    """See that ``role`` exists, owns the schema and may log in; returns its URL. Any number may do so at once.

    administrator  URL of the database for a superuser, or for somebody who may make roles
    Raises FailedPrecondition when that is not so, or the name belongs to somebody else.
    """
    url = role.address(administrator)
    if url is None or role.user is None:
        raise ValueError("there is no role to provide")
    async with _alone(administrator) as connection:
        try:
            await _provide(connection, role.user)
            if not await _may_log_in(url):
                await _let_in(connection, role.user, role.secret())
        except asyncpg.InsufficientPrivilegeError as error:
            raise FailedPrecondition(
                f"the role {role.user} cannot be made, or be given what is there: {error.args[0]}; make it with the"
                " credentials of a superuser, or let services connect with those that there are"
            ) from error
    return url


@asynccontextmanager
async def _alone(administrator: str) -> AsyncIterator[Any]:
    """A connection that keeps migrations and others of its kind waiting."""
    connection = await asyncpg.connect(asyncpg_url(administrator), timeout=_CONNECTS_WITHIN_S)
    try:
        await connection.execute("SELECT pg_advisory_lock($1)", MIGRATION_LOCK)
        yield connection
    finally:
        await connection.close()


async def _provide(connection: Any, name: str) -> None:
    administrator = await connection.fetchrow(_ADMINISTRATOR)
    if administrator["rolname"] == name:
        raise FailedPrecondition(
            f"services cannot have the role {name}, which is that of the administrator: give theirs another name"
        )
    found = await connection.fetchrow(_ROLE, name)
    if found is None:
        with suppress(asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):  # from another database, just now
            await _execute(connection, _CREATE, name)
            log.info("database.role_made", role=name)
        found = await connection.fetchrow(_ROLE, name)
    if any(found.values()):
        raise FailedPrecondition(
            f"the role {name} exists, and is a superuser or may make roles or databases: give that of the services"
            " another name"
        )
    if not administrator["rolsuper"] and not await connection.fetchval("SELECT pg_has_role($1, 'USAGE')", name):
        await _execute(connection, _JOIN, name)
    schema = await connection.fetchval("SELECT current_schema()")
    if schema is None:
        raise FailedPrecondition("the database has no schema that its administrator could use: CREATE SCHEMA public")
    if schema != "public":
        database = await connection.fetchval("SELECT current_database()")
        await _execute(connection, _SEARCH, name, database, schema)
    if handed_over := await hand_over(connection, name):
        log.info("database.handed_over", role=name, objects=handed_over)


async def _may_log_in(url: str) -> bool:
    try:
        connection = await asyncpg.connect(url, timeout=_CONNECTS_WITHIN_S)
    except asyncpg.InvalidAuthorizationSpecificationError:
        return False
    await connection.close()
    return True


async def _let_in(connection: Any, name: str, password: str | None) -> None:
    if other := await connection.fetchval(_USED_ELSEWHERE, name):
        raise FailedPrecondition(
            f"the role {name} has another password, and owns something in the database {other}: another installation"
            " uses it, so give the role of these services another name"
        )
    if password is not None and not password.isascii():
        raise FailedPrecondition(f"the password of the role {name} must be of ASCII characters")
    verifier = None if password is None else scram_verifier(password, secrets.token_bytes(SALT_BYTES))
    await _execute(connection, _LET_IN, name, verifier)


async def _execute(connection: Any, statement: str, *arguments: str | None) -> None:
    """A statement of those that take no parameters."""
    await connection.execute(await connection.fetchval("SELECT format($1, VARIADIC $2::text[])", statement, arguments))
