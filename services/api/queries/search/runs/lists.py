"""Lists of runs: searches that say nothing but the project, in an order of columns that every run has.

Pages and clients ask for little else. Such a list is one of a few statements with other parameters: they are built and
compiled once. Planning what a page shows takes the database longer than reading it, so that of a first page has no
parameters on which the plan depends, and is planned once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import BigInteger, ColumnElement, Select, bindparam, literal_column

from libs.db.engine import DriverConnection
from libs.db.tables.trials import trials
from libs.db.tables.workspaces import projects
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.experiments.experiments import check_project_exists
from services.api.queries.ordering import backwards
from services.api.queries.page_rows import is_as_counted, is_nearer_to_the_end, numbered, with_total
from services.api.queries.pagination import DEFAULT_SQL_LIMIT, SqlPage, sql_page
from services.api.queries.prepared import PreparedQuery, given, one_of_given
from services.api.queries.run_totals import IN_SIGHT, STAYS, counting, ids_in_order
from services.api.queries.search.conditions import RUNS, order
from services.api.queries.search.language.filters import Field, Filter, Group
from services.api.queries.search.language.sorting import SortKey
from services.api.queries.search.runs.shown import SHOWN, shown_runs
from services.api.wire.base import Pagination
from services.api.wire.search.runs import FlatRun
from services.api.wire.search.searches import SearchRequest

_MOST_STATEMENTS: Final = 256
_FEW_ROWS: Final = 200
"""Of a larger page it matters less what planning takes."""
_START: Final = bindparam("start", None, type_=BigInteger)
_LIMIT: Final = bindparam("limit", None, type_=BigInteger)


class RunList(Struct, frozen=True):
    """What two lists share that are the same statements."""

    keys: tuple[SortKey, ...]
    hides_archived: bool
    of_project: bool
    in_workspaces: bool


def list_of(filtered: Filter | None, keys: Sequence[SortKey], project_id: int, rights: UserRights) -> RunList | None:
    """The list that a search amounts to; None where it says more.

    project_id  0 is every project
    """
    is_list = filtered is None or _says_nothing(filtered.root)
    if not is_list or any(key.column not in RUNS.columns for key in keys):
        return None
    return RunList(
        keys=tuple(keys),
        hides_archived=filtered is not None and not filtered.show_archived,
        of_project=bool(project_id),
        in_workspaces=rights.workspaces_where(Action.VIEW_EXPERIMENT) is not None,
    )


async def list_runs(
    connection: DriverConnection, listed: RunList, request: SearchRequest, *, rights: UserRights
) -> tuple[list[FlatRun], Pagination]:
    """A page of the list. Raises InvalidRequest, NotFound for an unknown project."""
    wanted: dict[str, Any] = {}
    if listed.of_project:
        wanted["project"] = request.project_id
    if listed.in_workspaces:
        wanted["workspaces"] = rights.workspaces_where(Action.VIEW_EXPERIMENT)
    (counted,) = await _total(listed).rows(connection, **wanted)
    if listed.of_project and not counted.total:
        await check_project_exists(connection, request.project_id)
    page = sql_page(counted.total, offset=request.offset, limit=request.limit)
    if page.limit == 0:
        return [], page.pagination
    first = request.limit or DEFAULT_SQL_LIMIT
    if page.start == 0 and 0 < first <= _FEW_ROWS and _is_planned_once(listed):
        found = await _first_page(listed, request.project_id, first).rows(connection, **wanted)
        rows = sorted(found, key=attrgetter("place"))[: page.limit]  # one may have come since they were counted
    else:
        rows = await _rows(connection, listed, page, wanted)
    return await shown_runs(connection, rows), page.pagination


async def _rows(connection: DriverConnection, listed: RunList, page: SqlPage, wanted: Mapping[str, Any]) -> list[Any]:
    if is_nearer_to_the_end(page):
        found = await _from_the_end(listed).rows(connection, **wanted, start=page.rows_behind, limit=page.limit)
        if is_as_counted(found, page):
            return sorted(found, key=attrgetter("place"), reverse=True)
    found = await _page(listed).rows(connection, **wanted, start=page.start, limit=page.limit)
    return sorted(found, key=attrgetter("place"))


def _says_nothing(node: Group | Field) -> bool:
    return node.says_nothing if isinstance(node, Field) else all(map(_says_nothing, node.children))


def _is_planned_once(listed: RunList) -> bool:
    """Whether the plan of a first page is the best one for all parameters that are left."""
    return listed.of_project or not listed.in_workspaces


@lru_cache(_MOST_STATEMENTS)
def _total(listed: RunList) -> PreparedQuery:
    return PreparedQuery(counting(_conditions(listed, given("project", trials.c.project_id))))


@lru_cache(_MOST_STATEMENTS)
def _first_page(listed: RunList, project_id: int, size: int) -> PreparedQuery:
    """Project and size are in the statement. If they were parameters, a plan for all of them would be one for a project
    of average size, and for a tenth of its runs."""
    conditions = _conditions(listed, _constant(project_id))
    return PreparedQuery(_shown(ids_in_order(conditions, order(RUNS, listed.keys)).limit(_constant(size))))


@lru_cache(_MOST_STATEMENTS)
def _page(listed: RunList) -> PreparedQuery:
    conditions = _conditions(listed, given("project", trials.c.project_id))
    ids = ids_in_order(conditions, order(RUNS, listed.keys))
    return PreparedQuery(_shown(ids.offset(_START).limit(_LIMIT)))


@lru_cache(_MOST_STATEMENTS)
def _from_the_end(listed: RunList) -> PreparedQuery:
    """The start is counted from the end, and so is the place of each."""
    conditions = _conditions(listed, given("project", trials.c.project_id))
    ids = ids_in_order(conditions, backwards(order(RUNS, listed.keys)))
    return PreparedQuery(with_total(_shown(ids.offset(_START).limit(_LIMIT)), counting(conditions)))


def _shown(wanted: Select[Any]) -> Select[Any]:
    return numbered(SHOWN, trials.c.id, wanted)


def _constant(number: int) -> ColumnElement[int]:
    return literal_column(str(number), BigInteger)


def _conditions(listed: RunList, project_id: ColumnElement[int]) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = [STAYS]
    if listed.hides_archived:
        conditions += [~trials.c.archived, IN_SIGHT]
    if listed.of_project:
        conditions.append(trials.c.project_id == project_id)
    if listed.in_workspaces:
        conditions.append(one_of_given(projects.c.workspace_id, "workspaces"))
    return conditions
