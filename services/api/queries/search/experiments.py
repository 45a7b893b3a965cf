"""Searches of experiments, each shown with its best trial (docs/reference/platform.md 9)."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, false, true
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.experiments import experiments
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries.experiments.experiments import check_project_exists, counting, experiments_page
from services.api.queries.project_parts import ProjectParts
from services.api.queries.search.best_trials import best_trials
from services.api.queries.search.by_index.kept_totals import Searched, kept_total
from services.api.queries.search.by_index.label_index import labels_asked_for
from services.api.queries.search.by_index.value_index import matching
from services.api.queries.search.conditions import EXPERIMENTS, as_of_now, has_indexed_order, order, where
from services.api.queries.search.language.filters import parse_filter
from services.api.queries.search.language.sorting import parse_sort
from services.api.wire.base import Pagination
from services.api.wire.search.searches import FoundExperiment, SearchRequest


async def search_experiments(
    connection: AsyncConnection, request: SearchRequest, *, rights: UserRights, now: datetime, parts: ProjectParts
) -> tuple[list[FoundExperiment], Pagination]:
    """A page of the experiments that the filter lets through; those that are being deleted are none of them.

    Raises InvalidRequest, NotFound for an unknown project.
    """
    of_all: list[ColumnElement[bool]] = [experiments.c.state != "DELETING"]
    wanted = parse_filter(request.filter) if request.filter else None
    keys, root = parse_sort(request.sort), None if wanted is None else wanted.root
    table = await as_of_now(connection, EXPERIMENTS, root, keys, project_id=request.project_id)
    if request.project_id:
        of_all.append(experiments.c.project_id == request.project_id)
    shows_archived = wanted is None or wanted.show_archived
    if not shows_archived:
        of_all.append(~experiments.c.archived)
    conditions = [*of_all, rights.where_project(Action.VIEW_EXPERIMENT, experiments.c.project_id)]
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
    # Those of one label are counted already; of several, some may have more than one, and are looked at.
    has_label = [] if labels is None or len(labels) != 1 else labels
    if labels == []:
        fulfilled = false()
    sorting = order(table, keys)
    if request.project_id:
        await check_project_exists(connection, request.project_id)
    searched = Searched(
        table=EXPERIMENTS,
        root=root,
        project_id=request.project_id,
        shows_archived=shows_archived,
        conditions=of_all,
        is_in_index=by_index is not None,
        labels=None if has_label else labels,
    )
    total = await kept_total(connection, parts, searched, rights=rights)
    shown, pagination = await experiments_page(
        connection,
        conditions if by_index is not None or root is None or has_label else [*conditions, fulfilled],
        sorting,
        labels=has_label,
        by_index=by_index,
        is_in_index=has_indexed_order(keys),
        total=total,
        project_id=request.project_id,
        offset=request.offset,
        limit=request.limit,
        reader_id=rights.principal.user_id,
    )
    best_ids = [one.best_trial_id for one in shown if isinstance(one.best_trial_id, int)]
    best = await best_trials(connection, best_ids, now=now)
    found = [
        FoundExperiment(
            experiment=one,
            best_trial=best.get(one.best_trial_id) if isinstance(one.best_trial_id, int) else None,
        )
        for one in shown
    ]
    return found, pagination
