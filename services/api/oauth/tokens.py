"""Codes and tokens of clients, of which only digests are kept (RFC 6749 4.1, 4.4 and 6)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Final

from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from libs.db.tables.users import oauth_clients, oauth_tokens
from libs.tokens import digest, new_token
from services.api.oauth.errors import OAuthError

CODE_LIFETIME: Final = timedelta(minutes=5)
ACCESS_LIFETIME: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Granted:
    """Tokens for a client; refresh tokens end with it, or when it is authorized anew."""

    access_token: str
    refresh_token: str | None = None


async def client_of(db: Database, access_token: str, *, now: datetime) -> str | None:
    """The id of the client that holds a token; None for a token that is not good, or not any more."""
    query = select(oauth_tokens.c.client_id).where(
        oauth_tokens.c.token_hash == digest(access_token),
        oauth_tokens.c.kind == "ACCESS",
        oauth_tokens.c.expires_at > now,
    )
    async with db.read() as connection:
        client_id: str | None = await connection.scalar(query)
    return client_id


async def check_client(db: Database, client_id: str, secret: str) -> None:
    """Raises OAuthError."""
    query = select(oauth_clients.c.secret_hash).where(oauth_clients.c.id == client_id)
    async with db.read() as connection:
        kept = await connection.scalar(query)
    if not compare_digest(digest(secret), kept or bytes(32)) or kept is None:
        raise OAuthError("invalid_client", "there is no client with this id and secret", status=401)


async def new_code(db: Database, client_id: str, redirect_uri: str, *, now: datetime) -> str:
    """A code, which is worth one token."""
    async with db.transaction() as connection:
        return await _new(connection, client_id, "CODE", redirect_uri=redirect_uri, expires_at=now + CODE_LIFETIME)


async def for_code(db: Database, client_id: str, code: str, redirect_uri: str, *, now: datetime) -> Granted:
    """Raises OAuthError; the code is spent in any case."""
    async with db.transaction() as connection:
        spent = delete(oauth_tokens).where(oauth_tokens.c.token_hash == digest(code), oauth_tokens.c.kind == "CODE")
        row = (await connection.execute(spent.returning(oauth_tokens))).one_or_none()
    if row is None or row.client_id != client_id or row.expires_at <= now or row.redirect_uri != redirect_uri:
        raise OAuthError("invalid_grant", "the code is unknown, expired, or was given for another redirect_uri")
    async with db.transaction() as connection:
        earlier = delete(oauth_tokens).where(oauth_tokens.c.client_id == client_id, oauth_tokens.c.kind == "REFRESH")
        await connection.execute(earlier)
        refresh = await _new(connection, client_id, "REFRESH", expires_at=None)
        return Granted(await _access(connection, client_id, now), refresh)


async def for_refresh(db: Database, client_id: str, refresh_token: str, *, now: datetime) -> Granted:
    """Raises OAuthError."""
    query = select(oauth_tokens.c.client_id).where(
        oauth_tokens.c.token_hash == digest(refresh_token),
        oauth_tokens.c.kind == "REFRESH",
        oauth_tokens.c.client_id == client_id,
    )
    async with db.transaction() as connection:
        if (await connection.execute(query.with_for_update(key_share=True))).first() is None:
            raise OAuthError("invalid_grant", "the refresh token is unknown; authorize the client again")
        return Granted(await _access(connection, client_id, now))


async def for_client(db: Database, client_id: str, *, now: datetime) -> Granted:
    """For what the client does in its own name."""
    async with db.transaction() as connection:
        return Granted(await _access(connection, client_id, now))


async def _access(connection: AsyncConnection, client_id: str, now: datetime) -> str:
    return await _new(connection, client_id, "ACCESS", expires_at=now + ACCESS_LIFETIME)


async def _new(
    connection: AsyncConnection, client_id: str, kind: str, *, redirect_uri: str = "", expires_at: datetime | None
) -> str:
    # Locked, or who removes it meanwhile would make a broken reference of what follows.
    there = select(oauth_clients.c.id).where(oauth_clients.c.id == client_id).with_for_update(key_share=True)
    if await connection.scalar(there) is None:
        raise OAuthError("invalid_client", "the client was removed", status=401)
    token = new_token()
    await connection.execute(
        insert(oauth_tokens).values(
            token_hash=digest(token),
            client_id=client_id,
            kind=kind,
            redirect_uri=redirect_uri,
            expires_at=expires_at,
        )
    )
    return token
