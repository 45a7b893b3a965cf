"""Binds pools to workspaces: a pool that is bound is for those workspaces only; what runs is left alone.

Source: docs/reference/scheduling.md 9.3; docs/reference/platform.md 7.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import ARRAY, Text, delete, exists, func, literal, or_, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import ClusterConfig
from libs.db.any_of import any_of
from libs.db.engine import Database
from libs.db.outbox import announce
from libs.db.tables.workspaces import pool_bindings, workspaces
from libs.db.transactions import in_transaction
from libs.errors import InvalidRequest, NotFound
from libs.events.changes import WorkspaceChanged
from services.api.wire.cluster.pool_bindings import PoolBindingRequest

# Of two administrators at once the second begins when the first is done; nobody who reads waits.
_ONE_AT_A_TIME: Final = text("LOCK TABLE pool_bindings IN SHARE ROW EXCLUSIVE MODE")


async def bind(db: Database, cluster: ClusterConfig, pool: str, request: PoolBindingRequest) -> None:
    """Those workspaces may use the pool too. Binding twice changes nothing. Raises NotFound, InvalidRequest."""
    _check_may_be_bound(cluster, pool)

    async def work(connection: AsyncConnection) -> None:
        wanted = await _named_workspaces(connection, request)
        if not wanted:
            raise _nothing_named()
        await _write(connection, pool, added=wanted)

    await in_transaction(db, work)


async def replace_bindings(db: Database, cluster: ClusterConfig, pool: str, request: PoolBindingRequest) -> None:
    """Those workspaces may use the pool and no others; when there are none, all may. Raises as ``bind`` does."""
    _check_may_be_bound(cluster, pool)

    async def work(connection: AsyncConnection) -> None:
        wanted = await _named_workspaces(connection, request)
        await connection.execute(_ONE_AT_A_TIME)
        present = await bound_workspaces(connection, pool)
        await _write(connection, pool, added=wanted - present, removed=present - wanted)

    await in_transaction(db, work)


async def unbind(db: Database, cluster: ClusterConfig, pool: str, request: PoolBindingRequest) -> None:
    """Those workspaces are bound no more. Raises NotFound, also when one of them was not, InvalidRequest."""

    async def work(connection: AsyncConnection) -> None:
        await check_known(connection, cluster, pool)
        wanted = await _named_workspaces(connection, request)
        if not wanted:
            raise _nothing_named()
        await connection.execute(_ONE_AT_A_TIME)
        if missing := wanted - await bound_workspaces(connection, pool):
            raise NotFound(f"binding of resource pool {pool} to workspace", min(missing))
        await _write(connection, pool, removed=wanted)

    await in_transaction(db, work)


async def bound_workspaces(connection: AsyncConnection, pool: str) -> set[int]:
    found = await connection.execute(select(pool_bindings.c.workspace_id).where(pool_bindings.c.pool == pool))
    return set(found.scalars())


async def check_known(connection: AsyncConnection, cluster: ClusterConfig, pool: str) -> None:
    """Raises NotFound unless there is such a pool, or there was one whose bindings are left."""
    left = select(exists().where(pool_bindings.c.pool == pool))
    if cluster.pool(pool) is None and not await connection.scalar(left):
        raise _no_pool(pool)


def _check_may_be_bound(cluster: ClusterConfig, pool: str) -> None:
    if cluster.pool(pool) is None:
        raise _no_pool(pool)
    manager = cluster.resource_manager
    if pool in (manager.default_compute_resource_pool, manager.default_aux_resource_pool):
        raise InvalidRequest(f"default resource pool {pool} cannot be bound to any workspace")


def _no_pool(pool: str) -> NotFound:
    error = NotFound("resource pool", pool)
    error.args = (f"pool with name {pool} doesn't exist",)
    return error


def _nothing_named() -> InvalidRequest:
    return InvalidRequest("workspaceIds, workspaceNames: at least one workspace is required")


async def _named_workspaces(connection: AsyncConnection, request: PoolBindingRequest) -> set[int]:
    """Ids of the workspaces, which nobody deletes until the transaction ends. Raises NotFound."""
    lowered = {name.lower(): name for name in request.workspace_names}
    lower = func.lower(workspaces.c.name, type_=Text)
    query = (
        select(workspaces.c.id, lower.label("name"))
        .where(or_(any_of(workspaces.c.id, request.workspace_ids), any_of(lower, lowered)))
        .order_by(workspaces.c.id)
        .with_for_update(read=True, key_share=True)
    )
    found = (await connection.execute(query)).all()
    _check_found("workspace", request.workspace_ids, {row.id for row in found})
    names = {row.name for row in found}
    _check_found("workspace", [name for key, name in lowered.items() if key not in names], set())
    return {row.id for row in found}


def _check_found(noun: str, wanted: Sequence[int | str], found: set[int]) -> None:
    if missing := [one for one in wanted if one not in found]:
        raise NotFound(noun, missing[0])


async def _write(
    connection: AsyncConnection, pool: str, *, added: Iterable[int] = (), removed: Iterable[int] = ()
) -> None:
    come, gone = sorted(added), sorted(removed)
    columns = pool_bindings.c
    if come:
        rows = select(func.unnest(literal(come, ARRAY(columns.workspace_id.type))), literal(pool))
        bound = insert(pool_bindings).from_select([columns.workspace_id, columns.pool], rows)
        await connection.execute(bound.on_conflict_do_nothing())
    await connection.execute(delete(pool_bindings).where(columns.pool == pool, any_of(columns.workspace_id, gone)))
    concerned = select(workspaces.c.id, workspaces.c.name).where(any_of(workspaces.c.id, [*come, *gone]))
    await announce(
        connection,
        *(
            WorkspaceChanged(workspace_id=row.id, what="changed", name=row.name)
            for row in await connection.execute(concerned.order_by(workspaces.c.id))
        ),
    )
