"""Searches of runs by a filter and a sort."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, select, true
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.engine import Database
from libs.db.tables.trials import trials
from libs.db.tables.workspaces import projects
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.experiments.experiments import check_project_exists
from services.api.queries.matching import matching_rows
from services.api.queries.page_rows import rows_of_page
from services.api.queries.pagination import sql_page
from services.api.queries.project_parts import ProjectParts
from services.api.queries.run_totals import IN_SIGHT, STAYS, counting, ids_in_order
from services.api.queries.search.by_index.kept_totals import Searched, kept_total
from services.api.queries.search.by_index.label_index import having_one_of, labels_asked_for
from services.api.queries.search.by_index.value_index import matching
from services.api.queries.search.conditions import RUNS, as_of_now, has_indexed_order, order, where
from services.api.queries.search.language.filters import Filter, parse_filter
from services.api.queries.search.language.sorting import SortKey, parse_sort
from services.api.queries.search.runs.lists import list_of, list_runs
from services.api.queries.search.runs.shown import SHOWN, shown_runs
from services.api.wire.base import Pagination
from services.api.wire.search.runs import FlatRun
from services.api.wire.search.searches import SearchRequest


async def search_runs(
    db: Database, request: SearchRequest, *, rights: UserRights, parts: ProjectParts
) -> tuple[list[FlatRun], Pagination]:
    """A page of the runs that the filter lets through and that the caller may see.

    Raises InvalidRequest, NotFound for an unknown project.
    """
    filtered = parse_filter(request.filter) if request.filter else None
    keys = parse_sort(request.sort)
    listed = list_of(filtered, keys, request.project_id, rights)
    if listed is not None:
        async with db.read_prepared() as prepared:
            return await list_runs(prepared, listed, request, rights=rights)
    async with db.read() as connection:
        return await _search(connection, request, filtered, keys, rights=rights, parts=parts)


async def _search(
    connection: AsyncConnection,
    request: SearchRequest,
    filtered: Filter | None,
    keys: Sequence[SortKey],
    *,
    rights: UserRights,
    parts: ProjectParts,
) -> tuple[list[FlatRun], Pagination]:
    root = None if filtered is None else filtered.root
    table = await as_of_now(connection, RUNS, root, keys, project_id=request.project_id)
    shows_archived = filtered is None or filtered.show_archived
    of_all = _of_list(request.project_id, shows_archived=shows_archived)
    conditions = [*of_all, rights.where(Action.VIEW_EXPERIMENT, projects.c.workspace_id)]
    fulfilled = true() if root is None else where(table, root)
    by_index = matching(
        table,
        root,
        conditions,
        project_id=request.project_id,
        rights=rights,
        shows_archived=shows_archived,
        counting=counting,
    )
    labels = await labels_asked_for(connection, root)
    if labels is not None:
        fulfilled = having_one_of(trials.c.experiment_id, labels)
    sorting = order(table, keys)
    if request.project_id:
        await check_project_exists(connection, request.project_id)
    searched = Searched(
        table=RUNS,
        root=root,
        project_id=request.project_id,
        shows_archived=shows_archived,
        conditions=of_all,
        is_in_index=by_index is not None,
        labels=labels,
    )
    total = await kept_total(connection, parts, searched, rights=rights)
    if total is None:
        total = await connection.scalar(counting([*conditions, fulfilled]) if by_index is None else by_index.total)
    page = sql_page(total or 0, offset=request.offset, limit=request.limit)
    if page.limit == 0:
        return [], page.pagination
    if by_index is not None:
        listed = ids_in_order(conditions, sorting).order_by(None)
        is_in_index = bool(request.project_id) and has_indexed_order(keys)
        rows = await matching_rows(
            connection, SHOWN, listed, by_index, order=sorting, page=page, is_in_index=is_in_index
        )
    else:
        wanted = ids_in_order([*conditions, fulfilled], sorting).offset(page.start).limit(page.limit)
        rows = await rows_of_page(connection, SHOWN, trials.c.id, wanted)
    return await shown_runs(connection, rows), page.pagination


async def select_run_ids(
    connection: AsyncConnection, filter_text: str, project_id: int, *, rights: UserRights, right: Action
) -> list[int]:
    """Ids of the runs of a project that a filter lets through and with which the caller may do this, ascending.

    Raises InvalidRequest.
    """
    wanted = parse_filter(filter_text) if filter_text else None
    root = None if wanted is None else wanted.root
    table = await as_of_now(connection, RUNS, root, [], project_id=project_id)
    conditions = _of_list(project_id, shows_archived=wanted is None or wanted.show_archived)
    conditions.append(rights.where(right, projects.c.workspace_id))
    if root is not None:
        conditions.append(where(table, root))
    return list(await connection.scalars(ids_in_order(conditions, [trials.c.id])))


async def experiments_of(connection: AsyncConnection, run_ids: Sequence[int]) -> list[int]:
    """Ids of the experiments that the runs are of, each once."""
    query = select(trials.c.experiment_id).where(any_of(trials.c.id, run_ids)).distinct()
    return list(await connection.scalars(query))


def _of_list(project_id: int, *, shows_archived: bool) -> list[ColumnElement[bool]]:
    """project_id  0 is every project"""
    conditions: list[ColumnElement[bool]] = [STAYS]
    if not shows_archived:
        conditions += [~trials.c.archived, IN_SIGHT]
    if project_id:
        conditions.append(trials.c.project_id == project_id)
    return conditions
