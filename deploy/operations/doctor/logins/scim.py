"""SCIM: whether whoever may make users is hard to guess, there at all, and makes users that can log in."""

from __future__ import annotations

import asyncio
from typing import Final

import asyncpg

from deploy.operations.doctor.findings import Finding, ok, problem, warning
from libs.cluster.config import ClusterConfig
from libs.db.connecting.settings import DatabaseSettings, address
from libs.db.failures import DRIVER_ERRORS

PART: Final = "scim"
ANSWERS_WITHIN_S: Final = 5.0
SHORT_PASSWORD: Final = 16
"""Characters: nobody types it, and whoever has it makes users."""


async def check_scim(cluster: ClusterConfig, settings: DatabaseSettings) -> list[Finding]:
    """Nothing when it is off."""
    if not cluster.scim.enabled:
        return []
    findings = [*about_logins(cluster)]
    if cluster.scim.auth.type == "basic":
        return [*findings, about_password(cluster.scim.auth.password)]
    try:
        async with asyncio.timeout(ANSWERS_WITHIN_S):
            clients = await _clients(address(settings))
    except (OSError, TimeoutError, *DRIVER_ERRORS):
        return findings  # that the database does not answer, or has no schema, is said elsewhere
    return [*findings, about_clients(clients)]


def about_logins(cluster: ClusterConfig) -> list[Finding]:
    """Pure."""
    if cluster.oidc.enabled:
        return []
    says = "makes users who cannot log in: they have no password here, and oidc is not enabled"
    return [warning(PART, says, remedy="enable oidc with the same provider")]


def about_password(password: str) -> Finding:
    """Pure."""
    if len(password) >= SHORT_PASSWORD:
        return ok(PART, "its password is long enough")
    says = f"its password has {len(password)} characters, and whoever guesses it makes users"
    return warning(PART, says, remedy=f"give scim.auth.password {SHORT_PASSWORD} random characters or more")


def about_clients(clients: int) -> Finding:
    """Pure."""
    if clients:
        return ok(PART, f"{clients} OAuth client{'s' if clients > 1 else ''} may get a token")
    says = "nobody can call it: scim.auth.type is oauth, and there is no client"
    return problem(PART, says, remedy="run: det oauth client add NAME DOMAIN")


async def _clients(url: str) -> int:
    connection = await asyncpg.connect(url, timeout=ANSWERS_WITHIN_S)
    try:
        return int(await connection.fetchval("SELECT count(*) FROM oauth_clients"))
    finally:
        await connection.close()
