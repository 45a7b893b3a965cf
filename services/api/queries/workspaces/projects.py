"""Projects as the REST interface shows them (docs/reference/platform.md 8)."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Select, and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.stored import text_in
from libs.db.tables.experiments import experiments
from libs.db.tables.users import user_activity, users
from libs.db.tables.workspaces import project_keys, projects, workspaces
from libs.errors import NotFound
from libs.natural_order.sql import natural
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.workspaces.totals import experiments_of_projects, runs_of_projects
from services.api.queries.workspaces.workspaces import WIRE_STATES, Row, of_users
from services.api.wire.base import timestamp
from services.api.wire.ordering import OrderBy
from services.api.wire.workspaces.projects import GetProjectsQuery, Note, Project, SortProjects


def _select() -> Select[Any]:
    of_experiments, of_runs = experiments_of_projects(), runs_of_projects()
    last_started = select(func.max(experiments.c.start_time)).where(experiments.c.project_id == projects.c.id)
    return select(
        projects,
        users.c.username,
        workspaces.c.name.label("workspace_name"),
        workspaces.c.archived.label("workspace_archived"),
        func.coalesce(of_experiments.c.number, 0).label("num_experiments"),
        func.coalesce(of_experiments.c.active, 0).label("num_active_experiments"),
        func.coalesce(of_runs.c.number, 0).label("num_runs"),
        last_started.scalar_subquery().label("last_started_at"),
    ).select_from(
        projects.join(users, users.c.id == projects.c.owner_id)
        .join(workspaces, workspaces.c.id == projects.c.workspace_id)
        .outerjoin(of_experiments, of_experiments.c.project_id == projects.c.id)
        .outerjoin(of_runs, of_runs.c.project_id == projects.c.id)
    )


def stored_notes(stored: Any) -> list[Note]:
    """Notes as they were stored; those of imports may lack a name or contents."""
    found = stored if isinstance(stored, list) else []
    return [
        Note(name=text_in(note, "name"), contents=text_in(note, "contents")) for note in found if isinstance(note, dict)
    ]


def wire_project(row: Row) -> Project:
    return Project(
        id=row["id"],
        name=row["name"],
        workspace_id=row["workspace_id"],
        description=row["description"],
        last_experiment_started_at=timestamp(row["last_started_at"]),
        notes=stored_notes(row["notes"]),
        num_experiments=row["num_experiments"],
        num_active_experiments=row["num_active_experiments"],
        archived=row["archived"] or row["workspace_archived"],
        username=row["username"],
        immutable=row["immutable"],
        user_id=row["owner_id"],
        workspace_name=row["workspace_name"],
        state=WIRE_STATES[row["state"]],
        error_message=row["error_message"],
        key=row["key"],
        num_runs=row["num_runs"],
    )


async def project_row(connection: AsyncConnection, project_id: int, *, lock: bool = False) -> Row:
    """Raises NotFound."""
    if lock:
        await connection.execute(select(projects.c.id).where(projects.c.id == project_id).with_for_update())
    row: Row | None = (await connection.execute(_select().where(projects.c.id == project_id))).mappings().one_or_none()
    if row is None:
        raise NotFound("project", project_id)
    return row


async def project_by_key(connection: AsyncConnection, key: str) -> Row:
    """The project that has the key, or had it once; keys are compared without case. Raises NotFound."""
    query = _select().join(project_keys, project_keys.c.project_id == projects.c.id)
    row: Row | None = (
        (await connection.execute(query.where(project_keys.c.key == key.upper()))).mappings().one_or_none()
    )
    if row is None:
        raise NotFound("project", key)
    return row


_SORT: Final = {
    SortProjects.UNSPECIFIED: "id",
    SortProjects.CREATION_TIME: "created_at",
    SortProjects.LAST_EXPERIMENT_START_TIME: "last_started_at",
    SortProjects.NAME: "name",
    SortProjects.DESCRIPTION: "description",
    SortProjects.ID: "id",
}
_TEXTS: Final = frozenset({SortProjects.NAME, SortProjects.DESCRIPTION})


def _is_called(wanted: str) -> ColumnElement[bool]:
    """The project of that very name; in a workspace without it, those whose names differ from it by case alone.

    Names of projects may differ by case alone, and clients take the first hit for the project they named, even to
    delete it (docs/reference/tasks-and-cli.md 9).
    """
    others = projects.alias()
    is_a_name = select(others.c.id).where(others.c.workspace_id == projects.c.workspace_id, others.c.name == wanted)
    return or_(projects.c.name == wanted, and_(~is_a_name.exists(), func.lower(projects.c.name) == func.lower(wanted)))


async def list_projects(
    connection: AsyncConnection, workspace_id: int, query: GetProjectsQuery, *, rights: UserRights
) -> list[Project]:
    """The projects of a workspace, or of all when ``workspace_id`` is 0, that the caller may see."""
    statement = _select().where(rights.where(Action.VIEW_PROJECT, projects.c.workspace_id))
    if workspace_id:
        statement = statement.where(projects.c.workspace_id == workspace_id)
    if query.name:
        statement = statement.where(_is_called(query.name))
    if isinstance(query.archived, bool):
        archived = or_(projects.c.archived, workspaces.c.archived)
        statement = statement.where(archived if query.archived else ~archived)
    statement = of_users(statement, query.users, query.user_ids, owner=projects.c.owner_id)
    found = statement.subquery()
    column: ColumnElement[Any] = found.c[_SORT[query.sort_by]]
    if query.sort_by in _TEXTS:
        column = natural(column)
    descending = query.order_by is OrderBy.DESC
    order = column.desc().nulls_last() if descending else column.asc()
    return [
        wire_project(row) for row in (await connection.execute(select(found).order_by(order, found.c.id))).mappings()
    ]


async def recent_projects(connection: AsyncConnection, rights: UserRights, limit: int) -> list[Project]:
    """The projects that the caller looked at and may still see, the latest first."""
    seen = _select().join(user_activity, user_activity.c.project_id == projects.c.id)
    visible = rights.where(Action.VIEW_PROJECT, projects.c.workspace_id)
    mine = seen.where(user_activity.c.user_id == rights.principal.user_id, visible)
    mine = mine.order_by(user_activity.c.seen_at.desc(), projects.c.id)
    return [wire_project(row) for row in (await connection.execute(mine.limit(limit))).mappings()]
