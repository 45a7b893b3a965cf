"""Workspaces as the REST interface shows them (docs/reference/platform.md 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import UNSET
from sqlalchemy import ColumnElement, Select, and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config import CREDENTIALS, MASK, mask_credentials
from libs.db.any_of import any_of
from libs.db.tables.experiments import experiments
from libs.db.tables.users import users
from libs.db.tables.workspaces import projects, workspace_pins, workspaces
from libs.errors import NotFound
from libs.natural_order.sql import natural
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.wire.base import timestamp
from services.api.wire.ordering import OrderBy
from services.api.wire.users.users import AgentUserGroup
from services.api.wire.workspaces.workspaces import GetWorkspacesQuery, SortWorkspaces, Workspace, WorkspaceState

Row = Mapping[Any, Any]

WIRE_STATES: Final = {
    "": WorkspaceState.UNSPECIFIED,
    "DELETING": WorkspaceState.DELETING,
    "DELETE_FAILED": WorkspaceState.DELETE_FAILED,
}


def workspaces_seen_by(user_id: int) -> Select[Any]:
    """Every workspace with what a caller sees of it; rows have the columns of ``workspaces`` and the counts."""
    num_projects = select(func.count()).where(projects.c.workspace_id == workspaces.c.id).scalar_subquery()
    num_experiments = (
        select(func.count())
        .select_from(experiments.join(projects, projects.c.id == experiments.c.project_id))
        .where(projects.c.workspace_id == workspaces.c.id)
        .scalar_subquery()
    )
    pin = and_(workspace_pins.c.workspace_id == workspaces.c.id, workspace_pins.c.user_id == user_id)
    return select(
        workspaces,
        users.c.username,
        workspace_pins.c.pinned_at,
        num_projects.label("num_projects"),
        num_experiments.label("num_experiments"),
    ).select_from(workspaces.join(users, users.c.id == workspaces.c.owner_id).outerjoin(workspace_pins, pin))


def wire_workspace(row: Row) -> Workspace:
    storage = row["checkpoint_storage"]
    return Workspace(
        id=row["id"],
        name=row["name"],
        archived=row["archived"],
        username=row["username"],
        immutable=row["immutable"],
        num_projects=row["num_projects"],
        pinned=row["pinned_at"] is not None,
        pinned_at=timestamp(row["pinned_at"]),
        user_id=row["owner_id"],
        num_experiments=row["num_experiments"],
        state=WIRE_STATES[row["state"]],
        error_message=row["error_message"],
        agent_user_group=_identity(row),
        checkpoint_storage_config=UNSET if storage is None else masked(storage),
        default_compute_pool=row["default_compute_pool"],
        default_aux_pool=row["default_aux_pool"],
        auto_created_namespace=row["auto_created_namespace"] or UNSET,
    )


def masked(storage: dict[str, Any]) -> dict[str, Any]:
    """A storage configuration whose secrets cannot be read."""
    hidden: dict[str, Any] = mask_credentials(storage)
    return hidden


def unmasked(storage: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """A storage configuration in which secrets that came back masked are again what they were."""
    known = before or {}
    return {key: known.get(key) if key in CREDENTIALS and value == MASK else value for key, value in storage.items()}


def _identity(row: Row) -> AgentUserGroup | Any:
    given = {name: row[name] for name in ("agent_uid", "agent_gid", "agent_user", "agent_group")}
    if all(value is None for value in given.values()):
        return UNSET
    return AgentUserGroup(**{name: UNSET if value is None else value for name, value in given.items()})


async def workspace_row(connection: AsyncConnection, workspace_id: int, *, user_id: int = 0, lock: bool = False) -> Row:
    """Raises NotFound."""
    if lock:
        await connection.execute(select(workspaces.c.id).where(workspaces.c.id == workspace_id).with_for_update())
    query = workspaces_seen_by(user_id).where(workspaces.c.id == workspace_id)
    row: Row | None = (await connection.execute(query)).mappings().one_or_none()
    if row is None:
        raise NotFound("workspace", workspace_id)
    return row


async def list_workspaces(
    connection: AsyncConnection, query: GetWorkspacesQuery, *, rights: UserRights
) -> list[Workspace]:
    """Every workspace that matches and that the caller may see; the caller's pinned ones first among equals."""
    statement = workspaces_seen_by(rights.principal.user_id)
    statement = statement.where(rights.where(Action.VIEW_WORKSPACE, workspaces.c.id))
    if query.name:
        statement = statement.where(_is_named(query.name))
    if query.name_case_sensitive:
        statement = statement.where(workspaces.c.name == query.name_case_sensitive)
    if isinstance(query.archived, bool):
        statement = statement.where(workspaces.c.archived.is_(query.archived))
    if isinstance(query.pinned, bool):
        pinned = workspace_pins.c.pinned_at
        statement = statement.where(pinned.is_not(None) if query.pinned else pinned.is_(None))
    statement = of_users(statement, query.users, query.user_ids, owner=workspaces.c.owner_id)
    column = natural(workspaces.c.name) if query.sort_by is SortWorkspaces.NAME else workspaces.c.id
    descending = query.order_by is OrderBy.DESC
    statement = statement.order_by(
        column.desc() if descending else column.asc(),
        workspace_pins.c.pinned_at.desc().nulls_last(),
        workspaces.c.id,
    )
    found = [wire_workspace(row) for row in (await connection.execute(statement)).mappings()]
    if not query.name_case_sensitive:
        # Clients ask for the one of that name when they describe it; other lists say nothing of storage.
        for workspace in found:
            workspace.checkpoint_storage_config = UNSET
    return found


def _is_named(wanted: str) -> ColumnElement[bool]:
    """The workspace of that name, whatever its case; if there is none, those that ``%`` in it makes a pattern for.

    Clients take the first hit for the workspace they named, so a name goes before the pattern that it could be, and
    ``_``, which many names have, stands for itself (docs/reference/platform.md 7).
    """
    exactly = func.lower(workspaces.c.name) == wanted.lower()
    if "%" not in wanted:
        return exactly
    others = workspaces.alias()
    is_a_name = select(others.c.id).where(func.lower(others.c.name) == wanted.lower()).exists()
    pattern = wanted.replace("\\", "\\\\").replace("_", "\\_")
    return or_(exactly, and_(~is_a_name, workspaces.c.name.ilike(pattern, escape="\\")))


def of_users(statement: Select[Any], names: list[str], ids: list[int], *, owner: ColumnElement[int]) -> Select[Any]:
    """The statement for what any of these users owns; for all of them when none is named."""
    if names or ids:
        return statement.where(or_(any_of(users.c.username, names), any_of(owner, ids)))
    return statement
