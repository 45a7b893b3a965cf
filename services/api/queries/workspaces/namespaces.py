"""The namespaces that workspaces are bound to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import ResourceManagerConfig
from libs.db.tables.namespaces import workspace_namespace_bindings as bindings
from libs.db.tables.workspaces import workspaces
from libs.natural_order.sql import natural
from services.api.wire.workspaces.namespaces import NamespaceBinding

STALE: Final = "(stale)"
"""Behind the name of a cluster that is not configured any more."""


async def load_bindings(
    connection: AsyncConnection, workspace_id: int, manager: ResourceManagerConfig
) -> dict[str, NamespaceBinding]:
    """One per cluster, the default namespace where none is bound, and those of clusters that are gone."""
    shown = {
        manager.cluster_name: NamespaceBinding(
            workspace_id=workspace_id, namespace=manager.default_namespace, cluster_name=manager.cluster_name
        )
    }
    mine = select(bindings).where(bindings.c.workspace_id == workspace_id).order_by(natural(bindings.c.cluster_name))
    for row in await connection.execute(mine):
        is_here = row.cluster_name == manager.cluster_name and manager.has_namespaces
        shown[row.cluster_name if is_here else f"{row.cluster_name}{STALE}"] = NamespaceBinding(
            workspace_id=workspace_id,
            namespace=row.namespace,
            cluster_name=row.cluster_name,
            auto_create_namespace=row.auto_created,
        )
    return shown


async def list_unbound_workspaces(connection: AsyncConnection, manager: ResourceManagerConfig) -> Sequence[int]:
    """Ids of workspaces whose tasks run in the namespaces of their pools."""
    if not manager.has_namespaces:
        return []
    bound = select(bindings.c.workspace_id).where(bindings.c.cluster_name == manager.cluster_name)
    query = select(workspaces.c.id).where(workspaces.c.id.not_in(bound)).order_by(workspaces.c.id)
    return (await connection.execute(query)).scalars().all()
