"""Summaries and totals of trials as they are now, wherever they are kept.

They are in the row of the trial, unless there is a mark: then reports may have been appended that are in none of its
columns. The summary of a marked trial is what is folded, with the reports behind it folded in, all of one snapshot.
Nothing is read but the row where there is no mark. Source: libs/db/tables/metrics.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from sqlalchemy import ColumnElement, FromClause, Text, and_, case, cast, exists, func, literal, select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import DriverConnection, driver_connection
from libs.db.tables.metrics import metric_groups, metric_marks, metrics
from libs.db.tables.trials import trials
from services.api.metrics.groups import summary_key
from services.api.metrics.summary import GroupSummary, MetricSummary, fold
from services.api.queries.prepared import PreparedQuery, one_of_hidden

Series = tuple[str, str]
"""Group and name of a metric."""

SHOWN: Final = """CASE WHEN s.last IS NOT NULL AND s.last_step = g.folded_step
            THEN s.summary || jsonb_build_object('last', s.last) ELSE s.summary END"""
"""The summary of a name as of what is folded, of its row ``s`` and that of its group ``g``."""
BEHIND: Final = """FROM metrics m
              WHERE m.trial_id = g.trial_id AND m.metric_group = g.metric_group AND m.total_batches > g.folded_step
                AND NOT m.archived AND m.kind <> 'PROFILING'"""
"""The reports ``m`` of a group ``g`` that are not folded."""
TAIL: Final = f"""{BEHIND}
              ORDER BY m.total_batches, m.id"""
"""The same in their order."""
AVG: Final = "coalesce(m.metrics -> 'avg_metrics', m.metrics -> 'validation_metrics')"
"""The metrics of a report ``m``."""

_WHOLE: Final = f"""
SELECT t.id, t.total_batches, CASE WHEN mark.trial_id IS NULL THEN t.summary_metrics::text END AS document,
       g.metric_group,
       (SELECT m.total_batches FROM metrics m
         WHERE m.trial_id = g.trial_id AND m.metric_group = g.metric_group AND NOT m.archived AND m.kind <> 'PROFILING'
         ORDER BY m.total_batches DESC LIMIT 1) AS newest,
       (SELECT coalesce(jsonb_object_agg(s.name, {SHOWN}), '{{}}')::text
          FROM metric_summaries s WHERE s.summary_id = g.summary_id) AS folded,
       ARRAY(SELECT {AVG}::text {TAIL}) AS tail
  FROM trials t
  LEFT JOIN metric_marks mark ON mark.trial_id = t.id AND t.summary_in_rows
  LEFT JOIN metric_groups g ON g.trial_id = mark.trial_id
 WHERE """  # noqa: S608  (of constants)
# Both are planned once: if the database knew the list, it would plan anew each time, which takes longer than running.
_WHOLE_OF_ONE: Final = _WHOLE + "t.id = $1"
_WHOLE_OF_SEVERAL: Final = _WHOLE + "t.id = ANY((SELECT $1::bigint[])::bigint[])"
_OF_SERIES: Final = f"""
SELECT t.id, wanted.metric_group, wanted.name,
       (SELECT ({SHOWN})::text FROM metric_summaries s
         WHERE s.summary_id = g.summary_id AND s.name_key = metric_name_key(wanted.name)) AS folded,
       ARRAY(SELECT ({AVG} -> wanted.name)::text {TAIL}) AS tail
  FROM metric_marks mark
  JOIN trials t ON t.id = mark.trial_id AND t.summary_in_rows
 CROSS JOIN unnest($1::text[], $2::text[]) AS wanted (metric_group, name)
  LEFT JOIN metric_groups g ON g.trial_id = t.id AND g.metric_group = wanted.metric_group
 WHERE ($3::bigint IS NULL OR t.project_id = $3) AND ($4::bigint[] IS NULL OR t.experiment_id = ANY($4))
"""  # noqa: S608  (of constants)
_MARKED_BEST: Final = """
SELECT t.id FROM metric_marks mark JOIN trials t ON t.id = mark.trial_id AND t.summary_in_rows
 WHERE t.id IN (SELECT best_trial_id FROM experiments WHERE project_id = $1 AND id >= $2 AND id < $3)
"""

_group_decoder: Final = msgspec.json.Decoder(GroupSummary)
_metric_decoder: Final = msgspec.json.Decoder(MetricSummary)


class PresentTrial(Struct, frozen=True):
    """What the columns of a trial will be; ``summary`` is JSON."""

    total_batches: int
    summary: str


class PresentSummaries(Struct, frozen=True):
    """Summaries of marked trials, by id, in the form of the column; all others are true in their rows."""

    documents: Mapping[int, Any]

    def of(self, summary: ColumnElement[Any]) -> ColumnElement[Any]:
        """The summary of each row, for statements; ``summary`` is the column, of whichever alias of the table."""
        if not self.documents:
            return summary
        table = summary.table
        present = literal(self.by_text_id, JSONB)
        return type_coerce(func.coalesce(present.op("->")(cast(table.c.id, Text)), summary), JSONB)

    @property
    def by_text_id(self) -> dict[str, Any]:
        """As JSON has it."""
        return {str(ident): document for ident, document in self.documents.items()}


def is_marked(table: FromClause = trials) -> ColumnElement[bool]:
    """Whether reports of a trial may be in none of its columns."""
    return and_(table.c.summary_in_rows, exists().where(metric_marks.c.trial_id == table.c.id))


def total_batches_of(table: FromClause = trials) -> ColumnElement[int]:
    """The newest step of a trial, of all groups; a probe of an index for each group where it is marked.

    It may be above all reports that are there, as of an imported trial: it stays so, also when the mark has gone.
    """
    newest = (
        select(metrics.c.total_batches.label("step"))
        .where(
            metrics.c.trial_id == table.c.id,
            metrics.c.metric_group == metric_groups.c.metric_group,
            ~metrics.c.archived,
            metrics.c.kind != "PROFILING",
        )
        .order_by(metrics.c.total_batches.desc())
        .limit(1)
        .correlate(table, metric_groups)
        .scalar_subquery()
    )
    total = (
        select(func.greatest(table.c.total_batches, func.max(newest)))
        .where(metric_groups.c.trial_id == table.c.id)
        .correlate(table)
        .scalar_subquery()
    )
    return case((is_marked(table), total), else_=table.c.total_batches)


_TOTALS: Final = PreparedQuery(
    select(trials.c.id, total_batches_of().label("total")).where(one_of_hidden(trials.c.id, "trials"))
)


async def present_trials(
    connection: AsyncConnection | DriverConnection, trial_ids: Sequence[int]
) -> dict[int, PresentTrial]:
    """Trials that were marked a moment ago as they are now, by id; without those that are not there any more."""
    if not trial_ids:
        return {}
    driver = await driver_connection(connection)
    if len(trial_ids) == 1:
        rows = await driver.fetch(_WHOLE_OF_ONE, trial_ids[0])
    else:
        rows = await driver.fetch(_WHOLE_OF_SEVERAL, list(trial_ids))
    found: dict[int, PresentTrial] = {}
    groups: dict[int, dict[str, Raw | GroupSummary]] = {}
    totals: dict[int, int] = {}
    for ident, total, document, group, newest, folded, tail in rows:
        if document is not None:
            found[ident] = PresentTrial(total, document)
            continue
        of_trial = groups.setdefault(ident, {})
        totals[ident] = max(totals.get(ident, total), newest or 0)
        if group is not None:
            of_trial[summary_key(group)] = _with_tail(folded, tail) if tail else Raw(folded.encode())
    for ident, of_trial in groups.items():
        found[ident] = PresentTrial(totals[ident], msgspec.json.encode(of_trial).decode())
    return found


async def present_totals(connection: AsyncConnection, trial_ids: Sequence[int]) -> dict[int, int]:
    """The newest steps of trials that were marked a moment ago, by id; for those who need no summary."""
    if not trial_ids:
        return {}
    return {row.id: row.total for row in await _TOTALS.rows(connection, trials=list(trial_ids))}


async def marked_best(connection: AsyncConnection, project_id: int, first: int, end: int) -> list[int]:
    """Those that are marked of the best trials of a project's experiments with ids from ``first`` on and before
    ``end``."""
    driver = await driver_connection(connection)
    return [ident for (ident,) in await driver.fetch(_MARKED_BEST, project_id, first, end)]


async def present_series(
    connection: AsyncConnection | DriverConnection,
    series: Iterable[Series],
    *,
    project_id: int | None = None,
    experiment_ids: Sequence[int] | None = None,
) -> PresentSummaries:
    """Summaries of marked trials, all or some, with no other metrics than ``series``."""
    wanted = sorted({one for one in series if not any("\0" in part for part in one)})  # no name has a NUL
    if not wanted:
        return PresentSummaries({})
    driver = await driver_connection(connection)
    groups, names = zip(*wanted, strict=True)
    rows = await driver.fetch(_OF_SERIES, list(groups), list(names), project_id, _ids(experiment_ids))
    documents: dict[int, dict[str, GroupSummary]] = {}
    for ident, group, name, folded, tail in rows:
        of_trial = documents.setdefault(ident, {})  # also without any of the metrics: its column does not count
        of_group: GroupSummary = {} if folded is None else {name: _metric_decoder.decode(folded)}
        for value in tail:
            fold(of_group, {} if value is None else {name: msgspec.json.decode(value)}, newest=True)
        if of_group:
            of_trial.setdefault(summary_key(group), {}).update(of_group)
    return PresentSummaries(documents)


def _with_tail(folded: str, tail: Iterable[str]) -> GroupSummary:
    group = _group_decoder.decode(folded)
    for report in tail:
        fold(group, msgspec.json.decode(report), newest=True)
    return group


def _ids(ids: Sequence[int] | None) -> list[int] | None:
    return None if ids is None else list(ids)
