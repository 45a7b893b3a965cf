"""Workspaces as the REST interface shows them (docs/reference/platform.md 7)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from msgspec import UNSET
from sqlalchemy import BigInteger, Boolean, ColumnElement, Select, and_, bindparam, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config import CREDENTIALS, MASK, mask_credentials
from libs.db.any_of import any_of
from libs.db.engine import DriverConnection
from libs.db.tables.users import users
from libs.db.tables.workspaces import projects, workspace_pins, workspaces
from libs.errors import NotFound
from libs.natural_order.sql import natural
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.prepared import PreparedQuery, given, one_of_given
from services.api.queries.workspaces.totals import experiments_of_workspaces
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


def _workspaces_seen_by(user_id: ColumnElement[int]) -> Select[Any]:
    """Every workspace with what a caller sees of it; rows have the columns of ``workspaces`` and the counts."""
    num_projects = select(func.count()).where(projects.c.workspace_id == workspaces.c.id).scalar_subquery()
    of_experiments = experiments_of_workspaces()
    pin = and_(workspace_pins.c.workspace_id == workspaces.c.id, workspace_pins.c.user_id == user_id)
    return select(
        workspaces,
        users.c.username,
        workspace_pins.c.pinned_at,
        num_projects.label("num_projects"),
        func.coalesce(of_experiments.c.number, 0).label("num_experiments"),
    ).select_from(
        workspaces.join(users, users.c.id == workspaces.c.owner_id)
        .outerjoin(workspace_pins, pin)
        .outerjoin(of_experiments, of_experiments.c.workspace_id == workspaces.c.id)
    )


def wire_workspace(row: Row, *, shows_storage: bool = True) -> Workspace:
    storage = row["checkpoint_storage"] if shows_storage else None
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


_READER: Final = bindparam("reader", None, type_=BigInteger)
_BY_ID: Final = PreparedQuery(_workspaces_seen_by(_READER).where(workspaces.c.id == given("id", workspaces.c.id)))


async def workspace_row(connection: AsyncConnection | DriverConnection, workspace_id: int, *, user_id: int = 0) -> Row:
    """Raises NotFound."""
    for row in await _BY_ID.records(connection, reader=user_id, id=workspace_id):
        return row
    raise NotFound("workspace", workspace_id)


async def locked_workspace(connection: AsyncConnection, workspace_id: int) -> Row:
    """The same, locked until the transaction ends."""
    await connection.execute(select(workspaces.c.id).where(workspaces.c.id == workspace_id).with_for_update())
    return await workspace_row(connection, workspace_id)


async def list_workspaces(
    connection: AsyncConnection | DriverConnection, query: GetWorkspacesQuery, *, rights: UserRights
) -> list[Workspace]:
    """Every workspace that matches and that the caller may see; the caller's pinned ones first among equals."""
    wanted: dict[str, Any] = {}
    if (seen := rights.workspaces_where(Action.VIEW_WORKSPACE)) is not None:
        wanted["seen"] = seen
    if query.name:
        wanted["name"] = query.name.lower()
    if query.name_case_sensitive:
        wanted["exact_name"] = query.name_case_sensitive
    if isinstance(query.archived, bool):
        wanted["archived"] = query.archived
    if isinstance(query.pinned, bool):
        wanted["pinned"] = query.pinned
    if query.users or query.user_ids:
        wanted |= {"usernames": query.users, "user_ids": query.user_ids}
    conditions = frozenset(wanted)
    if "%" in query.name:
        conditions = conditions - {"name"} | {"pattern"}
        wanted["pattern"] = query.name.replace("\\", "\\\\").replace("_", "\\_")
    listing = _listing(query.sort_by is SortWorkspaces.NAME, query.order_by is OrderBy.DESC, conditions)
    rows = await listing.records(connection, reader=rights.principal.user_id, **wanted)
    # Clients ask for the one of that name when they describe it; other lists say nothing of storage.
    return [wire_workspace(row, shows_storage=bool(query.name_case_sensitive)) for row in rows]


def _is_named() -> ColumnElement[bool]:
    """The workspace of that name, whatever its case; if there is none, those that ``%`` in it makes a pattern for.

    Clients take the first hit for the workspace they named, so a name goes before the pattern that it could be, and
    ``_``, which many names have, stands for itself (docs/reference/platform.md 7).
    """
    others = workspaces.alias()
    is_a_name = select(others.c.id).where(func.lower(others.c.name) == _NAME).exists()
    pattern = workspaces.c.name.ilike(given("pattern", workspaces.c.name), escape="\\")
    return or_(func.lower(workspaces.c.name) == _NAME, and_(~is_a_name, pattern))


_NAME: Final = given("name", workspaces.c.name)
_PINNED: Final = bindparam("pinned", None, type_=Boolean)
_CONDITIONS: Final[Mapping[str, ColumnElement[bool]]] = {
    "seen": one_of_given(workspaces.c.id, "seen"),
    "name": func.lower(workspaces.c.name) == _NAME,
    "pattern": _is_named(),
    "exact_name": workspaces.c.name == given("exact_name", workspaces.c.name),
    "archived": workspaces.c.archived == given("archived", workspaces.c.archived),
    "pinned": workspace_pins.c.pinned_at.is_not(None) == _PINNED,
    "user_ids": or_(one_of_given(users.c.username, "usernames"), one_of_given(workspaces.c.owner_id, "user_ids")),
}


@cache
def _listing(by_name: bool, descending: bool, conditions: frozenset[str]) -> PreparedQuery:
    """All workspaces that fulfil the conditions of these names, in one of the few orders that there are."""
    column = natural(workspaces.c.name) if by_name else workspaces.c.id
    return PreparedQuery(
        _workspaces_seen_by(_READER)
        .where(*(_CONDITIONS[name] for name in sorted(conditions) if name in _CONDITIONS))
        .order_by(
            column.desc() if descending else column.asc(),
            workspace_pins.c.pinned_at.desc().nulls_last(),
            workspaces.c.id,
        )
    )


def of_users(statement: Select[Any], names: list[str], ids: list[int], *, owner: ColumnElement[int]) -> Select[Any]:
    """The statement for what any of these users owns; for all of them when none is named."""
    if names or ids:
        return statement.where(or_(any_of(users.c.username, names), any_of(owner, ids)))
    return statement
