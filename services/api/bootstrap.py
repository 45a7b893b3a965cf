"""Sets up an installation once in its life: the built-in users get their initial password."""

from __future__ import annotations

from sqlalchemy import select, update

from libs.clock import Clock
from libs.cluster.config import ClusterConfig
from libs.db.engine import Database
from libs.db.tables.cluster import cluster
from libs.db.tables.users import users
from libs.errors import InvalidRequest
from services.api.access import passwords

BUILT_IN_USERS = ("admin", "determined")


async def bootstrap(db: Database, clock: Clock, config: ClusterConfig, *, password: str | None = None) -> str:
    """Apply the initial password if that never happened. Returns the cluster id.

    password  the initial password; None takes that of the cluster configuration
    Raises InvalidRequest when a blank password would be applied and the feature switch forbids it.
    """
    if password is None:
        password = config.security.initial_user_password
    async with db.transaction() as connection:
        row = (await connection.execute(select(cluster).with_for_update())).mappings().one()
        if row["initialised_at"] is None:
            if not password and "prevent_blank_password" in config.feature_switches:
                raise InvalidRequest("security.initial_user_password is required, blank passwords are switched off")
            secret = await passwords.hashed(passwords.salted(password))
            built_in = users.c.username.in_(BUILT_IN_USERS)
            await connection.execute(update(users).where(built_in).values(password_hash=secret))
            await connection.execute(update(cluster).values(initialised_at=clock.now()))
        return str(row["cluster_id"])
