"""Sets up an installation once in its life: it gets its id, and the built-in users their initial password."""

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


async def bootstrap(
    db: Database, clock: Clock, config: ClusterConfig, *, password: str | None = None, cluster_id: str | None = None
) -> str:
    """Apply what a new installation is given, if that never happened. Returns the cluster id.

    password    the initial password; None takes that of the cluster configuration
    cluster_id  the id that launchers know the installation by; None leaves it to the database
    Raises InvalidRequest when a blank password would be applied and the feature switch forbids it, and when the
    database is that of an installation with another id.
    """
    if password is None:
        password = config.security.initial_user_password
    async with db.transaction() as connection:
        row = (await connection.execute(select(cluster).with_for_update())).mappings().one()
        if row["initialised_at"] is None:
            if not password and config.is_switched_on("prevent_blank_password"):
                raise InvalidRequest("security.initial_user_password is required, blank passwords are switched off")
            secret = await passwords.hashed(passwords.salted(password))
            built_in = users.c.username.in_(BUILT_IN_USERS)
            await connection.execute(update(users).where(built_in).values(password_hash=secret))
            chosen = cluster_id or row["cluster_id"]
            await connection.execute(update(cluster).values(initialised_at=clock.now(), cluster_id=chosen))
            return str(chosen)
        if cluster_id and cluster_id != row["cluster_id"]:
            raise InvalidRequest(
                f"cluster_id is {cluster_id}, but the database is that of installation {row['cluster_id']}: its tasks "
                "would not be found again; set cluster_id to that, or take an empty database"
            )
        return str(row["cluster_id"])


async def read_proxy_secret(db: Database) -> bytes:
    """The secret that proxy tokens of the installation are proven with."""
    async with db.read() as connection:
        return bytes((await connection.execute(select(cluster.c.proxy_secret))).scalar_one())
