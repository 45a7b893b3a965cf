"""Names of the metrics that one trial has reported, of which there may be a hundred thousand: found by the database.

They are keys of the summary in the trial's row or, where the summary is in rows, those rows and the reports that are
not folded into them yet (libs/db/tables/metrics.py).
"""

from __future__ import annotations

from typing import Any, Final

import asyncpg

from libs.db.engine import Database, driver_connection
from libs.errors import InvalidRequest
from services.api.metrics.groups import AVG_METRICS, TRAINING, VALIDATION, VALIDATION_METRICS
from services.api.queries.pagination import sql_page
from services.api.queries.trials.trials import check_trial_exists
from services.api.wire.charts.metric_names import (
    GetTrialMetricNamesQuery,
    GetTrialMetricNamesResponse,
    MetricGroupCount,
    MetricName,
    MetricSegment,
)

REGEX_TIME_MS: Final = 2_000
_LONGEST: Final = 1_000
_FITTING: Final = f"""
WITH named AS (
       SELECT CASE of_group.key WHEN '{AVG_METRICS}' THEN '{TRAINING}' WHEN '{VALIDATION_METRICS}' THEN '{VALIDATION}'
                   ELSE of_group.key END AS metric_group,
              jsonb_object_keys(
                  CASE jsonb_typeof(of_group.value) WHEN 'object' THEN of_group.value ELSE '{{}}' END) AS name
         FROM trials, jsonb_each(summary_metrics) AS of_group
        WHERE id = $1 AND NOT summary_in_rows
       UNION ALL
       SELECT g.metric_group, s.name
         FROM trials t
         JOIN metric_groups g ON g.trial_id = t.id
         JOIN metric_summaries s ON s.summary_id = g.summary_id
        WHERE t.id = $1 AND t.summary_in_rows
       UNION ALL
       SELECT DISTINCT g.metric_group, tail.name
         FROM trials t
         JOIN metric_groups g ON g.trial_id = t.id
         JOIN metrics m ON m.trial_id = g.trial_id AND m.metric_group = g.metric_group
              AND m.total_batches > g.folded_step AND NOT m.archived AND m.kind <> 'PROFILING'
        CROSS JOIN jsonb_object_keys(
              coalesce(m.metrics -> '{AVG_METRICS}', m.metrics -> '{VALIDATION_METRICS}')) AS tail (name)
        WHERE t.id = $1 AND t.summary_in_rows AND NOT EXISTS (
              SELECT FROM metric_summaries s
               WHERE s.summary_id = g.summary_id AND s.name_key = metric_name_key(tail.name))
     ), fitting AS (
       SELECT metric_group, name, substr(name, length($3) + 1) AS rest
         FROM named
        WHERE ($2 = '' OR metric_group = $2) AND starts_with(name, $3)
          AND ($4 = '' OR strpos(lower(name), lower($4)) > 0) AND ($5 = '' OR name ~ $5)
     )"""  # noqa: S608 - of constants
_COUNTS: Final = f"""{_FITTING}
SELECT metric_group, count(*), count(DISTINCT CASE WHEN $6 <> '' THEN split_part(rest, $6, 1) END)
  FROM fitting
 GROUP BY GROUPING SETS ((metric_group), ())
 ORDER BY metric_group COLLATE "C" NULLS LAST"""  # noqa: S608 - of constants
_NAMES: Final = f"""{_FITTING}
SELECT metric_group, name FROM fitting
 ORDER BY metric_group COLLATE "C", name COLLATE "C" OFFSET $6 LIMIT $7"""  # noqa: S608 - of constants
_SEGMENTS: Final = f"""{_FITTING}
SELECT segment, count(*), bool_or(segment = rest)
  FROM (SELECT split_part(rest, $6, 1) AS segment, rest FROM fitting) AS next
 GROUP BY segment ORDER BY segment COLLATE "C" OFFSET $7 LIMIT $8"""  # noqa: S608 - of constants


async def find_metric_names(
    db: Database, trial_id: int, query: GetTrialMetricNamesQuery
) -> GetTrialMetricNamesResponse:
    """A page of the names that fit, by group and name, or of the segments by which they go on.

    Raises NotFound, InvalidRequest for an expression that is wrong or takes too long.
    """
    for name in ("group", "prefix", "text", "regex", "separator"):
        if len(getattr(query, name)) > _LONGEST:
            raise InvalidRequest(f"{name}: must not be longer than {_LONGEST} characters")
    async with db.searches, db.read() as connection:
        await check_trial_exists(connection, trial_id)
        driver = await driver_connection(connection)
        async with driver.transaction(isolation="repeatable_read", readonly=True):
            if query.regex:
                await driver.execute(f"SET LOCAL statement_timeout = {REGEX_TIME_MS}")
            try:
                return await _find(driver, trial_id, query)
            except asyncpg.InvalidRegularExpressionError as error:
                raise InvalidRequest(f"regex: {error}") from error
            except asyncpg.QueryCanceledError as error:
                raise InvalidRequest("regex: the search by this regular expression takes too long") from error


async def _find(driver: Any, trial_id: int, query: GetTrialMetricNamesQuery) -> GetTrialMetricNamesResponse:
    wanted = (trial_id, query.group, query.prefix, query.text, query.regex)
    *groups, (_, names, segments) = await driver.fetch(_COUNTS, *wanted, query.separator)
    total = segments if query.separator else names
    page = sql_page(total, offset=query.offset, limit=query.limit)
    found = GetTrialMetricNamesResponse(
        groups=[MetricGroupCount(group=group, count=count) for group, count, _ in groups],
        names=[],
        segments=[],
        pagination=page.pagination,
    )
    if page.limit == 0:
        return found
    if query.separator:
        rows = await driver.fetch(_SEGMENTS, *wanted, query.separator, page.start, page.limit)
        found.segments = [MetricSegment(segment=each, count=count, is_metric=ends) for each, count, ends in rows]
    else:
        rows = await driver.fetch(_NAMES, *wanted, page.start, page.limit)
        found.names = [MetricName(group=group, name=name) for group, name in rows]
    return found
