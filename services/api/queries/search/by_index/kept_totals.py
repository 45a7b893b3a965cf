"""Totals of searches that an index or labels answer: counted once, and again only in parts that have changed.

What such a filter asks about, and which rows are in sight, is what the triggers of ``project_changes`` note
(libs/db/tables/experiments.py). Counted each time, a page of twenty rows would pay for all that are behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from libs.db.tables.workspaces import projects
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.queries import run_totals
from services.api.queries.experiments import experiments as of_experiments
from services.api.queries.project_parts import Part, PartReader, ProjectParts
from services.api.queries.search.by_index.label_index import having_one_of
from services.api.queries.search.by_index.value_index import matching_by_part, only_field
from services.api.queries.search.conditions import METRICS, SearchTable, as_of_now, where
from services.api.queries.search.language.filters import Field, Group

FEW: Final = 1000
"""Rows that an index counts no slower than somebody looks at a part."""
_TOTAL: Final = "total"


class Searched(Struct, frozen=True):
    """A search of one project, or of all for 0, whoever asks.

    conditions   without the filter
    is_in_index  whether an index answers the filter (value_index.py)
    labels       those that the filter amounts to, if it does (label_index.py)
    """

    table: SearchTable
    root: Group | Field | None
    project_id: int
    shows_archived: bool
    conditions: Sequence[ColumnElement[bool]]
    is_in_index: bool
    labels: Sequence[str] | None


async def kept_total(
    connection: AsyncConnection, parts: ProjectParts, searched: Searched, *, rights: UserRights
) -> int | None:
    """How many rows there are; None where nothing keeps it, or the caller may not see the project."""
    field = None if searched.root is None else only_field(searched.root)
    if not searched.project_id or field is None or not (searched.is_in_index or searched.labels):
        return None
    if rights.workspaces_where(Action.VIEW_EXPERIMENT) is not None:
        is_it = [projects.c.id == searched.project_id, rights.where_project(Action.VIEW_EXPERIMENT, projects.c.id)]
        if await connection.scalar(select(projects.c.id).where(*is_it)) is None:
            return None
    return (await parts.of_project(connection, searched.project_id, _reader(searched, field)))[_TOTAL]


def _reader(searched: Searched, field: Field) -> PartReader[Counter[str]]:
    now: list[SearchTable] = []
    table, of_runs = searched.table, searched.table.of_runs
    experiment_id = trials.c.experiment_id if of_runs else experiments.c.id
    counting = run_totals.counting if of_runs else of_experiments.counting

    async def read(connection: AsyncConnection, part: Part) -> Counter[str]:
        if not now:  # all parts are of one snapshot
            now.append(await as_of_now(connection, table, field, [], project_id=searched.project_id))
        in_part = [experiment_id >= part.first, experiment_id < part.end]
        query = counting([*searched.conditions, *in_part, _fulfilled(searched, field, now[0])])
        return Counter({_TOTAL: await connection.scalar(query) or 0})

    async def read_all(connection: AsyncConnection, _: int) -> Mapping[int, Counter[str]]:
        by_part: dict[int, Counter[str]] = {}
        for part, number in await connection.execute(_by_part(searched, field)):
            by_part.setdefault(part, Counter())[_TOTAL] += number
        return by_part

    return PartReader[Counter[str]](
        what=f"total of {table.name}, {searched.shows_archived}, {field}, {searched.labels}",
        read=read,
        empty=Counter,
        add=Counter.update,
        of_reports=field.location in METRICS,
        read_all=read_all,
        is_small=lambda total: total[_TOTAL] <= FEW,
    )


def _fulfilled(searched: Searched, field: Field, table: SearchTable) -> ColumnElement[bool]:
    """Of labels as they were asked for a moment ago, where a look at them is enough."""
    if searched.labels and table.of_runs:
        return having_one_of(trials.c.experiment_id, searched.labels)
    return where(table, field)


def _by_part(searched: Searched, field: Field) -> Select[Any]:
    counting = run_totals.counting_by_part if searched.table.of_runs else of_experiments.counting_by_part
    if not searched.is_in_index:
        return counting([*searched.conditions, _fulfilled(searched, field, searched.table)])
    return matching_by_part(
        searched.table,
        field,
        searched.conditions,
        project_id=searched.project_id,
        shows_archived=searched.shows_archived,
        counting_by_part=counting,
    )
