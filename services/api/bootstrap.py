"""What happens once in the life of an installation: the built-in users get their initial password."""

from __future__ import annotations

from sqlalchemy import select, update

from libs.clock import Clock
from libs.db.engine import Database
from libs.db.tables.cluster import cluster
from libs.db.tables.users import users
from services.api.access import passwords


async def bootstrap(db: Database, clock: Clock, initial_user_password: str) -> str:
    """Apply the initial password if that never happened. Returns the cluster id."""
    secret = await passwords.hashed(passwords.salted(initial_user_password))
    async with db.transaction() as connection:
        row = (await connection.execute(select(cluster).with_for_update())).mappings().one()
        if row["initialised_at"] is None:
            await connection.execute(
                update(users).where(users.c.username.in_(("admin", "determined"))).values(password_hash=secret)
            )
            await connection.execute(update(cluster).values(initialised_at=clock.now()))
        return str(row["cluster_id"])
