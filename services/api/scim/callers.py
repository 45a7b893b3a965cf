"""Who may call SCIM: whoever knows the name and the password of the configuration, or has a token of a client."""

from __future__ import annotations

import binascii
from base64 import b64decode
from datetime import datetime
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from libs.cluster.config import ScimAuthConfig
from libs.db.engine import Database
from services.api.access.logins import Logins
from services.api.oauth.tokens import client_of
from services.api.scim.errors import UnknownCaller

_CHALLENGES: Final = {"basic": 'Basic realm="SCIM", charset="UTF-8"', "oauth": 'Bearer realm="SCIM"'}
"""Kind of authentication -> what a refusal asks for."""


async def caller_of(
    header: str, *, address: str, config: ScimAuthConfig, db: Database, logins: Logins, now: datetime
) -> str:
    """The name of the caller, for the audit log; ``header`` is Authorization. Raises UnknownCaller,
    ResourceExhausted."""
    challenge = _CHALLENGES[config.type]
    if not header:
        raise UnknownCaller("token missing", challenge=challenge)
    scheme, _, given = header.partition(" ")
    if config.type == "oauth":
        client_id = await client_of(db, given.strip(), now=now) if scheme.lower() == "bearer" else None
        if client_id is None:
            raise UnknownCaller("invalid credentials", challenge=challenge)
        return f"scim:{client_id}"

    async def check() -> None:
        if scheme.lower() != "basic" or not _is_right(given.strip(), config):
            raise UnknownCaller("invalid credentials", challenge=challenge)

    # Counted by address alone: there is one name, and whoever guesses must not make its owner wait.
    await logins.attempt(f"scim from {address}", address, check)
    return f"scim:{config.username}"


def _is_right(given: str, config: ScimAuthConfig) -> bool:
    try:
        name, _, password = b64decode(given, validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return False
    same_name = _same(name, config.username)
    return _same(password, config.password) and same_name


def _same(given: bytes, wanted: str) -> bool:
    """Digests have one length, so how long this takes tells nothing."""
    return compare_digest(sha256(given).digest(), sha256(wanted.encode()).digest())
