"""Binds workspaces to namespaces in three steps, since no transaction waits for a cluster: claim what is to be made,
have the launcher find or make it, write down the binding.

A failure leaves the bindings and the cluster as they were: what was made on the way is deleted again.
Source: docs/reference/kubernetes.md 8.2 and 8.3, docs/reference/platform.md 7.2.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct
from sqlalchemy import Select, delete, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import ClusterConfig
from libs.db.any_of import any_of
from libs.db.outbox import announce
from libs.db.tables.namespaces import auto_created_namespaces as made
from libs.db.tables.namespaces import workspace_namespace_bindings as bindings
from libs.db.tables.workspaces import workspaces
from libs.errors import FailedPrecondition, InvalidRequest
from libs.events.changes import WorkspaceChanged
from services.api.actions.workspaces.namespace_claims import (
    NamespaceClaim,
    check_unclaimed,
    claim_namespace,
    claimed_name,
    confirm_namespace,
    give_up_namespace,
)
from services.api.app import App
from services.api.cluster_admin.launcher_client import create_namespace, require_namespace, set_quota
from services.api.cluster_admin.namespace_names import own_namespace_name
from services.api.cluster_admin.namespace_requests import (
    NO_OWN_NAMESPACE,
    NamespaceRequest,
    cluster_named,
    read_quotas,
    require_cluster,
)
from services.api.queries.workspaces.workspaces import Row, locked_workspace, workspace_row


class BindingPlan(Struct, frozen=True, kw_only=True):
    """What one request comes to."""

    cluster_name: str
    namespace: str
    is_own: bool
    """It is the one that is made for the workspace."""
    claim: NamespaceClaim | None
    """Of one that is to be made, unless it is there."""
    quota: int | None = None


async def bind_workspace(app: App, workspace_id: int, requests: Sequence[NamespaceRequest]) -> list[BindingPlan]:
    """Bind the workspace as is asked for; what runs stays where it is.

    Raises NotFound, InvalidRequest and FailedPrecondition for what cannot be, Unavailable when the launcher is away.
    """
    async with app.db.transaction() as connection:
        row = await changeable_workspace(connection, workspace_id)
        plans = await plan_bindings(app, connection, requests, workspace_id=workspace_id, name=row["name"], row=row)
    async with carried_out(app, plans), app.db.transaction() as connection:
        row = await changeable_workspace(connection, workspace_id)
        await write_bindings(app, connection, workspace_id, plans)
        await announce(connection, WorkspaceChanged(workspace_id=workspace_id, what="changed", name=row["name"]))
    return plans


async def bind_unbound_workspaces(app: App, workspace_ids: Iterable[int]) -> None:
    """Give each a namespace of its own, unless it is bound already. Those before one that fails keep theirs."""
    require_cluster(app.cluster.resource_manager)
    own = NamespaceRequest(cluster_name=app.cluster.resource_manager.cluster_name, namespace=None)
    wanted = sorted(set(workspace_ids))
    async with app.db.read() as connection:
        for workspace_id in wanted:
            await workspace_row(connection, workspace_id)
        bound = set((await connection.execute(_bound_to(own.cluster_name))).scalars())
    for workspace_id in wanted:
        if workspace_id not in bound:
            await bind_workspace(app, workspace_id, [own])


async def unbind_workspace(app: App, workspace_id: int, cluster_names: Sequence[str]) -> None:
    """Have its tasks run in the namespaces of their pools again. ``cluster_names`` may be of clusters that are gone."""
    manager = app.cluster.resource_manager
    names = {name or manager.cluster_name for name in cluster_names or [""]}
    async with app.db.transaction() as connection:
        row = await changeable_workspace(connection, workspace_id)
        mine = (bindings.c.workspace_id == workspace_id) & any_of(bindings.c.cluster_name, names)
        found = await connection.execute(delete(bindings).where(mine).returning(bindings.c.cluster_name))
        for name in sorted(names - set(found.scalars())):
            raise FailedPrecondition(
                f"tried to delete default binding for cluster {cluster_named(manager, name)} of workspace {row['name']}"
            )
        await announce(connection, WorkspaceChanged(workspace_id=workspace_id, what="changed", name=row["name"]))


async def set_quotas(app: App, workspace_id: int, quotas: Mapping[str, int]) -> None:
    """Limit the slots that the tasks of a workspace may hold; ``quotas`` are by cluster.

    Raises FailedPrecondition unless it is bound to the namespace that was made for it.
    """
    manager = app.cluster.resource_manager
    async with app.db.read() as connection:
        row = await workspace_row(connection, workspace_id)
        require_cluster(manager)
        if not quotas:
            raise InvalidRequest("clusterQuotaPairs: name at least one quota")
        limits = read_quotas(quotas, manager=manager)
        own = select(bindings.c.cluster_name, bindings.c.namespace)
        mine = (bindings.c.workspace_id == workspace_id) & bindings.c.auto_created
        namespaces = {one.cluster_name: one.namespace for one in await connection.execute(own.where(mine))}
    if limits.keys() - namespaces.keys():
        raise FailedPrecondition(NO_OWN_NAMESPACE)
    for cluster_name, slots in limits.items():
        namespace = namespaces[cluster_name]
        await set_quota(app.bus, app.cluster.representative_pool, namespace, slots)
        async with app.db.transaction() as connection:
            asked = update(made).where(made.c.cluster_name == cluster_name, made.c.namespace == namespace)
            await connection.execute(asked.values(quota_slots=slots))
            await announce(connection, WorkspaceChanged(workspace_id=workspace_id, what="changed", name=row["name"]))


async def changeable_workspace(connection: AsyncConnection, workspace_id: int) -> Row:
    """The workspace, locked. Raises NotFound, and FailedPrecondition for one that is being deleted."""
    row = await locked_workspace(connection, workspace_id)
    if row["state"] == "DELETING":
        raise FailedPrecondition(f"workspace ({workspace_id}) is being deleted and cannot be changed")
    return row


async def plan_bindings(
    app: App,
    connection: AsyncConnection,
    requests: Sequence[NamespaceRequest],
    *,
    workspace_id: int,
    name: str,
    row: Row | None = None,
) -> list[BindingPlan]:
    """The first step, in a transaction of its own. ``row`` is None for a workspace that is yet to be.

    Raises FailedPrecondition when the namespace was made for another workspace.
    """
    known = row["auto_created_namespace"] if row else None
    plans: list[BindingPlan] = []
    for request in requests:
        if request.namespace is not None:
            await check_unclaimed(connection, request.namespace, workspace_id)
        namespace = request.namespace or known or await claimed_name(connection, workspace_id)
        namespace = namespace or own_namespace_name(
            workspace=name,
            workspace_id=workspace_id,
            installation=app.release_namespace,
            cluster_id=app.cluster_id,
        )
        claim = None
        if request.namespace is None:
            claim = await claim_namespace(
                connection,
                request.cluster_name,
                namespace,
                workspace_id,
                is_confirmed=known is not None,
                now=app.clock.now(),
            )
        plans.append(
            BindingPlan(
                cluster_name=request.cluster_name,
                namespace=namespace,
                is_own=request.namespace in (None, known),
                claim=claim,
                quota=request.quota,
            )
        )
    return plans


@asynccontextmanager
async def carried_out(app: App, plans: Sequence[BindingPlan]) -> AsyncIterator[None]:
    """The second step, around the third: what the launcher made is deleted again when either of them fails."""
    try:
        await _carry_out(app, plans)
        yield
    except Exception:
        for plan in plans:
            if plan.claim is not None:
                await give_up_namespace(app, plan.claim)
        raise


async def _carry_out(app: App, plans: Iterable[BindingPlan]) -> None:
    """What the launcher does. Doing it again changes nothing."""
    pool = app.cluster.representative_pool
    for plan in plans:
        if plan.claim is not None:
            await create_namespace(app.bus, pool, plan.namespace)
        else:
            await require_namespace(app.bus, pool, plan.namespace)
        if plan.quota is not None:
            await set_quota(app.bus, pool, plan.namespace, plan.quota)


async def write_bindings(
    app: App, connection: AsyncConnection, workspace_id: int, plans: Iterable[BindingPlan]
) -> None:
    """The third step, in the transaction in which the workspace is locked or made."""
    for plan in plans:
        if plan.claim is not None:
            await confirm_namespace(connection, plan.claim, quota=plan.quota, now=app.clock.now())
            values = {"auto_created_namespace": plan.namespace}
            await connection.execute(update(workspaces).where(workspaces.c.id == workspace_id).values(values))
        key = {"workspace_id": workspace_id, "cluster_name": plan.cluster_name}
        if _is_implied(app.cluster, plan.namespace):
            await connection.execute(delete(bindings).filter_by(**key))
            continue
        where = {"namespace": plan.namespace, "auto_created": plan.is_own}
        bound = upsert(bindings).values(**key, **where)
        await connection.execute(bound.on_conflict_do_update(index_elements=list(key), set_=where))


def _is_implied(cluster: ClusterConfig, namespace: str) -> bool:
    """Whether tasks run there without a binding, whatever their pool: such a binding is not kept."""
    default = cluster.resource_manager.default_namespace
    return namespace == default and all(
        (pool.kubernetes_namespace or default) == default for pool in cluster.resource_pools
    )


def _bound_to(cluster_name: str) -> Select[Any]:
    return select(bindings.c.workspace_id).where(bindings.c.cluster_name == cluster_name)
