"""Claims on namespaces that are made for workspaces: rows that are there before their namespace and go after it.

A claim keeps two requests, and the scheduler, from working at the same namespace. Whatever dies in between, the
scheduler finds the row of a workspace that does not exist, and deletes what was made; a request that fails deletes it
itself. Source: docs/reference/kubernetes.md 8.2 and 8.3.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import structlog
from msgspec import Struct
from sqlalchemy import ColumnElement, delete, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.namespaces import auto_created_namespaces as made
from libs.errors import FailedPrecondition, ResoluteError, Unavailable
from services.api.app import App
from services.api.cluster_admin.launcher_client import delete_namespace

log = structlog.get_logger()

CLAIM: Final = timedelta(minutes=5)
"""Much longer than any request takes."""


class NamespaceClaim(Struct, frozen=True, kw_only=True):
    """One request's right to make a namespace."""

    cluster_name: str
    namespace: str
    workspace_id: int
    until: datetime
    is_first: bool
    """Nobody had or claimed the namespace before, so nobody misses it when this request fails."""


async def check_unclaimed(connection: AsyncConnection, namespace: str, workspace_id: int) -> None:
    """What was made for a workspace goes with it, together with whatever else would run there.

    Raises FailedPrecondition when it was made for another workspace.
    """
    query = select(made.c.workspace_id).where(made.c.namespace == namespace, made.c.workspace_id != workspace_id)
    if (other := (await connection.execute(query)).scalar()) is not None:
        raise FailedPrecondition(f"namespace {namespace} was made for workspace ({other}) and goes with it")


async def claimed_name(connection: AsyncConnection, workspace_id: int) -> str | None:
    """What an earlier request was about to call its namespace; the workspace may have another name by now."""
    query = select(made.c.namespace).where(made.c.workspace_id == workspace_id).order_by(made.c.namespace)
    return (await connection.execute(query)).scalar()


async def claim_namespace(
    connection: AsyncConnection,
    cluster_name: str,
    namespace: str,
    workspace_id: int,
    *,
    is_confirmed: bool,
    now: datetime,
) -> NamespaceClaim:
    """Keep the namespace from being deleted, or forgotten, while this request is at work.

    is_confirmed  the workspace has it already
    Raises FailedPrecondition when it was made for another workspace.
    """
    until = now + CLAIM
    key = {"cluster_name": cluster_name, "namespace": namespace}
    before = select(made.c.claimed_until).filter_by(**key).with_for_update()
    known = (await connection.execute(before)).one_or_none()
    row = upsert(made).values(**key, workspace_id=workspace_id, claimed_until=until)
    # Long ids are cut in the name, so two workspaces might come to the same.
    mine = row.on_conflict_do_update(
        index_elements=list(key), set_={"claimed_until": until}, where=made.c.workspace_id == workspace_id
    )
    if not (await connection.execute(mine)).rowcount:
        raise FailedPrecondition(f"namespace {namespace} was made for another workspace")
    is_given_up = known is not None and known.claimed_until is not None and known.claimed_until <= now
    is_first = not is_confirmed and (known is None or is_given_up)
    return NamespaceClaim(**key, workspace_id=workspace_id, until=until, is_first=is_first)


async def confirm_namespace(
    connection: AsyncConnection, claim: NamespaceClaim, *, quota: int | None, now: datetime
) -> None:
    """From here on the namespace is there as long as its workspace is.

    Raises Unavailable when the claim has expired.
    """
    mine = made.c.workspace_id == claim.workspace_id
    in_time = or_(made.c.claimed_until.is_(None), made.c.claimed_until > now)
    values = {"claimed_until": None} | ({} if quota is None else {"quota_slots": quota})
    confirmed = update(made).where(_row_of(claim), mine, in_time).values(values)
    if not (await connection.execute(confirmed)).rowcount:
        raise Unavailable(f"making namespace {claim.namespace} took too long, try again")


async def give_up_namespace(app: App, claim: NamespaceClaim) -> None:
    """Delete what a request made that has failed, unless another one has come to rely on it.

    A launcher that is away is not waited for: the row stays, and the namespace goes with its workspace.
    """
    if not claim.is_first:
        return
    expired = app.clock.now()
    async with app.db.transaction() as connection:
        ours = update(made).where(_row_of(claim), made.c.claimed_until == claim.until)
        if not (await connection.execute(ours.values(claimed_until=expired))).rowcount:
            return
    try:
        await delete_namespace(app.bus, app.cluster.representative_pool, claim.namespace)
    except ResoluteError as error:
        log.warning("namespace.not_deleted", namespace=claim.namespace, error=str(error))
        return
    async with app.db.transaction() as connection:
        await connection.execute(delete(made).where(_row_of(claim), made.c.claimed_until == expired))


def _row_of(claim: NamespaceClaim) -> ColumnElement[bool]:
    return (made.c.cluster_name == claim.cluster_name) & (made.c.namespace == claim.namespace)
