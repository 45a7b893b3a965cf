"""Puts summaries into rows without keeping anybody waiting, however many metrics they have.

The rows are written first, as a summary that nothing refers to and that is left to be deleted. Then, for a moment, the
trials are locked, and those that are as they were get their rows. Whoever is killed in between leaves rows that are
deleted as those of any summary that was replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from libs.db.tables.metrics import NOTHING_FOLDED
from services.api.metrics.rows.statements import FORGET_GROUPS, KEEP_IN_ROWS

# All of one snapshot. A report changes the row of a trial that has its summary in its column: while the row has the
# same version, the trial has the same reports.
_STAGE: Final = f"""
WITH trial AS MATERIALIZED (
       SELECT id, xmin AS version, summary_metrics AS summary
         FROM trials
        WHERE id = ANY($1::bigint[]) AND NOT summary_in_rows
     ), staged AS MATERIALIZED (
       SELECT named.*, nextval('metric_summary_ids') AS summary_id,
              coalesce((SELECT max(m.total_batches)
                          FROM metrics m
                         WHERE m.trial_id = named.id AND m.metric_group = named.metric_group AND NOT m.archived
                           AND m.kind <> 'PROFILING'), {NOTHING_FOLDED}) AS folded_step
         FROM (SELECT trial.id, key,
                      CASE key WHEN 'avg_metrics' THEN 'training' WHEN 'validation_metrics' THEN 'validation'
                      ELSE key END AS metric_group
                 FROM trial CROSS JOIN LATERAL jsonb_object_keys(trial.summary) AS key) AS named
     ), left_behind AS (
       INSERT INTO metric_garbage (summary_id) SELECT summary_id FROM staged
     ), written AS (
       INSERT INTO metric_summaries (summary_id, name_key, name, summary, last, last_step)
       SELECT staged.summary_id, metric_name_key(each.key), each.key, each.value - 'last', each.value -> 'last',
              CASE WHEN each.value ? 'last' THEN staged.folded_step ELSE {NOTHING_FOLDED} END
         FROM staged
         JOIN trial ON trial.id = staged.id
        CROSS JOIN LATERAL jsonb_each(trial.summary -> staged.key) AS each
     )
SELECT trial.id, trial.version, staged.metric_group, staged.summary_id, staged.folded_step
  FROM trial LEFT JOIN staged ON staged.id = trial.id
"""  # noqa: S608  (of constants)
LOCK_UNCHANGED: Final = """
SELECT t.id
  FROM trials t JOIN unnest($1::bigint[], $2::xid[]) AS seen (id, version) ON t.id = seen.id AND t.xmin = seen.version
 ORDER BY t.id
   FOR NO KEY UPDATE OF t SKIP LOCKED
"""
_GIVE: Final = """
WITH given AS (
       INSERT INTO metric_groups (trial_id, metric_group, summary_id, run_id, folded_step)
       SELECT trial_id, metric_group, summary_id, -1, folded_step
         FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::integer[])
              AS of_group (trial_id, metric_group, summary_id, folded_step)
     )
DELETE FROM metric_garbage WHERE summary_id = ANY($3::bigint[])
"""


class Moved(Struct, frozen=True):
    """Trials whose summary is in rows now, and those that somebody was changing, which stay as they were."""

    trial_ids: list[int]
    changed: list[int]


async def move_into_rows(driver: Any, trial_ids: Sequence[int]) -> Moved:
    """Put the summaries of trials into rows that have them in their columns, which are true and stay as they are.

    On an asyncpg connection outside of a transaction, of whoever alone deletes what is left of summaries.
    """
    staged = await driver.fetch(_STAGE, list(trial_ids))
    versions = {trial_id: version for trial_id, version, *_ in staged}
    if not versions:
        return Moved([], [])
    async with driver.transaction():
        locked = await driver.fetch(LOCK_UNCHANGED, list(versions), list(versions.values()))
        unchanged = {trial_id for (trial_id,) in locked}
        await driver.execute(FORGET_GROUPS, list(unchanged))  # of an earlier time in rows
        groups = [
            (trial_id, group, summary_id, step)
            for trial_id, _, group, summary_id, step in staged
            if trial_id in unchanged and group is not None
        ]
        await driver.execute(_GIVE, *([list(column) for column in zip(*groups, strict=True)] or [[], [], [], []]))
        await driver.execute(KEEP_IN_ROWS, list(unchanged))
    return Moved(sorted(unchanged), sorted(versions.keys() - unchanged))
