"""Gives the administrator of the database the configured password, as long as the former one still opens it."""

from __future__ import annotations

import secrets
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import asyncpg
import structlog

from libs.db.connecting.settings import asyncpg_url
from libs.db.services_role.password import SALT_BYTES, scram_verifier
from libs.errors import FailedPrecondition

log = structlog.get_logger()

_CONNECTS_WITHIN_S: Final = 10.0
_CHANGE: Final = "SELECT format('ALTER ROLE CURRENT_USER PASSWORD %L', $1::text)"


async def change_password(wanted: str, former: str) -> bool:
    """See that the password of the URL ``wanted`` opens the database; returns whether it had to be changed there.

    former  the URL as it was configured before; nothing is done where it is of another database or another role
    Raises FailedPrecondition when neither password opens it.
    """
    if _without_password(wanted) != _without_password(former) or await _opens(wanted):
        return False
    role = unquote(urlsplit(wanted).username or "")
    try:
        connection = await asyncpg.connect(asyncpg_url(former), timeout=_CONNECTS_WITHIN_S)
    except asyncpg.InvalidAuthorizationSpecificationError as error:
        raise FailedPrecondition(
            f"neither the configured password of the role {role} nor the one before opens the database; as a superuser,"
            f' give it the configured one: ALTER ROLE "{role}" PASSWORD ...'
        ) from error
    try:
        await _change(connection, unquote(urlsplit(wanted).password or ""))
    finally:
        await connection.close()
    log.info("database.password_changed", role=role)
    return True


async def _opens(url: str) -> bool:
    try:
        connection = await asyncpg.connect(asyncpg_url(url), timeout=_CONNECTS_WITHIN_S)
    except asyncpg.InvalidAuthorizationSpecificationError:
        return False
    await connection.close()
    return True


async def _change(connection: Any, password: str) -> None:
    # The server prepares passwords of other characters itself (SASLprep).
    stored = scram_verifier(password, secrets.token_bytes(SALT_BYTES)) if password.isascii() else password
    await connection.execute(await connection.fetchval(_CHANGE, stored))


def _without_password(url: str) -> tuple[str | None, str | None, int | None, str]:
    parts = urlsplit(asyncpg_url(url))
    return parts.username, parts.hostname, parts.port, parts.path
