"""Binding workspaces to namespaces, in three steps, since no transaction waits for a cluster: claim what is to be made,
have the launcher find or make it, write down the binding.

A claim is a row that is there before its namespace. Whatever dies in between, the scheduler finds the row of a
workspace that does not exist, and deletes what was made. A failure leaves the bindings as they were.
Source: spec/kubernetes.md 8.2 and 8.3, spec/platform.md 7.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Select, delete, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import ClusterConfig
from libs.db.outbox import announce
from libs.db.tables.namespaces import auto_created_namespaces as made
from libs.db.tables.namespaces import workspace_namespace_bindings as bindings
from libs.db.tables.workspaces import workspaces
from libs.errors import FailedPrecondition, InvalidRequest, Unavailable
from libs.events.changes import WorkspaceChanged
from services.api.app import App
from services.api.places.asking import create_namespace, require_namespace, set_quota
from services.api.places.names import own_namespace_name
from services.api.places.wishes import NO_OWN_NAMESPACE, NamespaceWish, cluster_named, read_quotas, require_cluster
from services.api.queries.workspaces import Row, workspace_row

CLAIM: Final = timedelta(minutes=5)
"""Much longer than any request takes."""


class Plan(Struct, frozen=True, kw_only=True):
    """What one wish comes to."""

    cluster_name: str
    namespace: str
    is_own: bool
    """It is the one that is made for the workspace."""
    is_to_be_made: bool
    quota: int | None = None


async def bind_workspace(app: App, workspace_id: int, wishes: Sequence[NamespaceWish]) -> list[Plan]:
    """Bind the workspace as it is wished; what runs stays where it is.

    Raises NotFound, InvalidRequest and FailedPrecondition for what cannot be, Unavailable when the launcher is away.
    """
    async with app.db.transaction() as connection:
        row = await changeable_workspace(connection, workspace_id)
        plans = await plan_bindings(app, connection, wishes, workspace_id=workspace_id, name=row["name"], row=row)
    await carry_out(app, plans)
    async with app.db.transaction() as connection:
        row = await changeable_workspace(connection, workspace_id)
        await write_bindings(app, connection, workspace_id, plans)
        await announce(connection, WorkspaceChanged(workspace_id=workspace_id, what="changed", name=row["name"]))
    return plans


async def bind_unbound_workspaces(app: App, workspace_ids: Iterable[int]) -> None:
    """Give each a namespace of its own, unless it is bound already. Those before one that fails keep theirs."""
    require_cluster(app.cluster.resource_manager)
    own = NamespaceWish(cluster_name=app.cluster.resource_manager.cluster_name, namespace=None)
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
        mine = (bindings.c.workspace_id == workspace_id) & bindings.c.cluster_name.in_(names)
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
    row = await workspace_row(connection, workspace_id, lock=True)
    if row["state"] == "DELETING":
        raise FailedPrecondition(f"workspace ({workspace_id}) is being deleted and cannot be changed")
    return row


async def plan_bindings(
    app: App,
    connection: AsyncConnection,
    wishes: Sequence[NamespaceWish],
    *,
    workspace_id: int,
    name: str,
    row: Row | None = None,
) -> list[Plan]:
    """The first step, in a transaction of its own. ``row`` is None for a workspace that is yet to be.

    Raises FailedPrecondition when the namespace was made for another workspace.
    """
    known = row["auto_created_namespace"] if row else None
    plans: list[Plan] = []
    for wish in wishes:
        if wish.namespace is not None:
            await _check_free(connection, wish.namespace, workspace_id)
        namespace = wish.namespace or known or await _claimed_name(connection, workspace_id)
        namespace = namespace or own_namespace_name(
            workspace=name,
            workspace_id=workspace_id,
            installation=app.release_namespace,
            cluster_id=app.cluster_id,
        )
        if wish.namespace is None:
            await _claim(app, connection, wish.cluster_name, namespace, workspace_id)
        plans.append(
            Plan(
                cluster_name=wish.cluster_name,
                namespace=namespace,
                is_own=wish.namespace in (None, known),
                is_to_be_made=wish.namespace is None,
                quota=wish.quota,
            )
        )
    return plans


async def carry_out(app: App, plans: Iterable[Plan]) -> None:
    """The second step: what the launcher does. Doing it again changes nothing."""
    pool = app.cluster.representative_pool
    for plan in plans:
        if plan.is_to_be_made:
            await create_namespace(app.bus, pool, plan.namespace)
        else:
            await require_namespace(app.bus, pool, plan.namespace)
        if plan.quota is not None:
            await set_quota(app.bus, pool, plan.namespace, plan.quota)


async def write_bindings(app: App, connection: AsyncConnection, workspace_id: int, plans: Iterable[Plan]) -> None:
    """The third step, in the transaction in which the workspace is locked or made."""
    for plan in plans:
        if plan.is_to_be_made:
            await _settle(app, connection, plan, workspace_id)
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


async def _check_free(connection: AsyncConnection, namespace: str, workspace_id: int) -> None:
    """What was made for a workspace goes with it, together with whatever else would run there."""
    query = select(made.c.workspace_id).where(made.c.namespace == namespace, made.c.workspace_id != workspace_id)
    if (other := (await connection.execute(query)).scalar()) is not None:
        raise FailedPrecondition(f"namespace {namespace} was made for workspace ({other}) and goes with it")


async def _claimed_name(connection: AsyncConnection, workspace_id: int) -> str | None:
    """What an earlier request was about to call its namespace; the workspace may have another name by now."""
    query = select(made.c.namespace).where(made.c.workspace_id == workspace_id).order_by(made.c.namespace)
    return (await connection.execute(query)).scalar()


async def _claim(app: App, connection: AsyncConnection, cluster_name: str, namespace: str, workspace_id: int) -> None:
    """Keep the namespace from being deleted, or forgotten, while this request is at work."""
    until = {"claimed_until": app.clock.now() + CLAIM}
    row = upsert(made).values(cluster_name=cluster_name, namespace=namespace, workspace_id=workspace_id, **until)
    # Long ids are cut in the name, so two workspaces might come to the same.
    mine = row.on_conflict_do_update(
        index_elements=["cluster_name", "namespace"], set_=until, where=made.c.workspace_id == workspace_id
    )
    if not (await connection.execute(mine)).rowcount:
        raise FailedPrecondition(f"namespace {namespace} was made for another workspace")


async def _settle(app: App, connection: AsyncConnection, plan: Plan, workspace_id: int) -> None:
    """From here on the namespace is there as long as its workspace is."""
    mine = (made.c.cluster_name == plan.cluster_name) & (made.c.namespace == plan.namespace)
    in_time = or_(made.c.claimed_until.is_(None), made.c.claimed_until > app.clock.now())
    values = {"claimed_until": None} | ({} if plan.quota is None else {"quota_slots": plan.quota})
    settled = update(made).where(mine, made.c.workspace_id == workspace_id, in_time).values(values)
    if not (await connection.execute(settled)).rowcount:
        raise Unavailable(f"making namespace {plan.namespace} took too long, try again")


def _bound_to(cluster_name: str) -> Select[Any]:
    return select(bindings.c.workspace_id).where(bindings.c.cluster_name == cluster_name)
