"""Takes nodes out of service and back. The scheduler carries it out: nothing new starts on a disabled node, and what
runs there is killed unless the node drains (docs/reference/scheduling.md 11.2)."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert

from libs.db.engine import Database
from libs.db.outbox import announce
from libs.db.tables.cluster import node_overrides
from libs.events.changes import PoolChanged


async def disable_node(db: Database, node: str, *, drain: bool, pools: Iterable[str]) -> None:
    """From here on nothing new starts there. ``pools`` are those the node belongs to; their planners hear of it."""
    async with db.transaction() as connection:
        row = insert(node_overrides).values(node=node, draining=drain)
        await connection.execute(row.on_conflict_do_update(index_elements=["node"], set_={"draining": drain}))
        await announce(connection, *(PoolChanged(pool=pool, what="capacity") for pool in pools))


async def enable_node(db: Database, node: str, *, pools: Iterable[str]) -> None:
    """Back in service. Enabling twice changes nothing."""
    async with db.transaction() as connection:
        await connection.execute(delete(node_overrides).where(node_overrides.c.node == node))
        await announce(connection, *(PoolChanged(pool=pool, what="capacity") for pool in pools))
