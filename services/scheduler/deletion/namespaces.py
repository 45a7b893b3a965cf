"""Deletes namespaces that were made for workspaces once their workspace is gone, whoever deleted it.

The row of a namespace is there before the namespace and goes after it, so that none is forgotten: not one whose
workspace was never finished because the api died, nor one whose cluster was away. Source:
docs/reference/kubernetes.md 8.3.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import structlog
from sqlalchemy import ColumnElement, delete, or_, select

from libs.bus import Bus
from libs.clock import Clock
from libs.cluster.config import ClusterConfig
from libs.db.any_of import any_of
from libs.db.engine import Connection, Database
from libs.db.tables.namespaces import auto_created_namespaces as made
from libs.db.tables.tasks import allocations
from libs.db.tables.workspaces import workspaces
from libs.errors import FailedPrecondition
from libs.events import subjects
from libs.events.cluster_admin import DELETE_NAMESPACE, ClusterNamespaceRequest

log = structlog.get_logger()

REQUEUE_AFTER_S: Final = 1.0
_ASK_TIMEOUT_S: Final = 15.0


class NamespaceDeletion:
    def __init__(self, *, db: Database, bus: Bus, clock: Clock, cluster: ClusterConfig) -> None:
        self._db = db
        self._bus = bus
        self._clock = clock
        self._manager = cluster.resource_manager
        self._asked = cluster.representative_pool

    async def advance(self, workspace_id: int) -> float | None:
        """Delete what was made for a workspace that is gone; returns when to look again, None when nothing is left.

        Namespaces in which something still runs, as of a project that has moved away, wait for it to end. Those of
        clusters that are not configured any more are out of reach, and stay. Raises Unavailable when the launcher does
        not answer.
        """
        if not self._manager.has_namespaces:
            return None
        async with self._db.read() as connection:
            query = select(made.c.namespace).where(self._of(workspace_id))
            forgotten = list((await connection.execute(query)).scalars())
            in_use = await _in_use(connection, forgotten)
        for namespace in forgotten:
            if namespace not in in_use:
                await self._delete(workspace_id, namespace)
        return REQUEUE_AFTER_S if in_use else None

    def _of(self, workspace_id: int) -> ColumnElement[bool]:
        is_gone = ~select(workspaces.c.id).where(workspaces.c.id == made.c.workspace_id).exists()
        is_free = or_(made.c.claimed_until.is_(None), made.c.claimed_until <= self._clock.now())
        is_here = made.c.cluster_name == self._manager.cluster_name
        return (made.c.workspace_id == workspace_id) & is_gone & is_free & is_here

    async def _delete(self, workspace_id: int, namespace: str) -> None:
        subject = subjects.launcher_rpc(self._asked, DELETE_NAMESPACE)
        question = msgspec.json.encode(ClusterNamespaceRequest(namespace=namespace))
        try:
            await self._bus.request(subject, question, timeout_s=_ASK_TIMEOUT_S)
        except FailedPrecondition as error:
            # Somebody else's after all: it will not become ours by asking again.
            log.warning("namespace.left_alone", namespace=namespace, workspace=workspace_id, error=str(error))
        else:
            log.info("namespace.deleted", namespace=namespace, workspace=workspace_id)
        async with self._db.transaction() as connection:
            await connection.execute(delete(made).where(self._of(workspace_id), made.c.namespace == namespace))


async def _in_use(connection: Connection, namespaces: list[Any]) -> set[str]:
    if not namespaces:
        return set()
    live = select(allocations.c.namespace).where(
        any_of(allocations.c.namespace, namespaces), allocations.c.released_at.is_(None)
    )
    return set((await connection.execute(live)).scalars())
