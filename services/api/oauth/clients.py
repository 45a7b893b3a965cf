"""Clients that may ask for tokens: providers of identities, which administrators register."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import RowMapping, delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from libs.db.tables.users import oauth_clients
from libs.errors import InvalidRequest, NotFound
from libs.ids import new_uuid
from libs.tokens import digest, new_token
from services.api.oauth.redirects import host_of_domain

LONGEST: Final = 256
"""Characters of a name and of a domain."""


async def list_clients(connection: AsyncConnection) -> Sequence[RowMapping]:
    """In the order of their making."""
    query = select(oauth_clients).order_by(oauth_clients.c.created_at, oauth_clients.c.id)
    return (await connection.execute(query)).mappings().all()


async def find_client(connection: AsyncConnection, client_id: str) -> RowMapping | None:
    query = select(oauth_clients).where(oauth_clients.c.id == client_id)
    return (await connection.execute(query)).mappings().one_or_none()


async def add_client(db: Database, *, name: str, domain: str, now: datetime) -> dict[str, Any]:
    """The client with its secret, which nobody can ever read again. Raises InvalidRequest."""
    for key, value in (("name", name), ("domain", domain)):
        if not value.strip() or len(value) > LONGEST:
            raise InvalidRequest(f"{key}: must have between 1 and {LONGEST} characters")
    host_of_domain(domain)
    client_id, secret = new_uuid(), new_token()
    async with db.transaction() as connection:
        await connection.execute(
            insert(oauth_clients).values(
                id=client_id, name=name, domain=domain, secret_hash=digest(secret), created_at=now
            )
        )
    return {"id": client_id, "secret": secret, "name": name, "domain": domain}


async def remove_client(db: Database, client_id: str) -> None:
    """With all of its tokens. Raises NotFound."""
    async with db.transaction() as connection:
        gone = delete(oauth_clients).where(oauth_clients.c.id == client_id).returning(oauth_clients.c.id)
        if (await connection.execute(gone)).first() is None:
            raise NotFound("OAuth client", client_id)
