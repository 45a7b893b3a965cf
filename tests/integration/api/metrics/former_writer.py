"""What services of the release before do with reports of numbers, statement by statement.

The statements are those of that release and stay as they are: it knows summaries as a column of their trial only, and
reads and writes it whole. The rest is as little as they need: reports of a step that was reported before, of another
run or of validations are not among what it is given.
"""

from __future__ import annotations

import json
from typing import Any, Final

import asyncpg

from tests.integration.api.metrics.reference import SUMMARY_KEYS, Report, Row, kind_of

TRIES: Final = 5
LOCK_TRIALS: Final = """
SELECT id, experiment_id, state, run_id, total_batches, summary_metrics::text AS summary,
       searcher_metric_value, searcher_metric_signed, best_validation_id, latest_validation_id, restarts,
       (SELECT t.task_id FROM trial_tasks t WHERE t.trial_id = trials.id ORDER BY t.position DESC LIMIT 1) AS task_id
  FROM trials
 WHERE id = ANY($1::bigint[])
 ORDER BY id
   FOR NO KEY UPDATE
"""
NEIGHBOURS: Final = """
SELECT m.id
  FROM metrics m
 WHERE m.trial_id = $1 AND m.metric_group = $2 AND m.total_batches >= $3 AND NOT m.archived AND m.kind <> 'PROFILING'
"""
INSERT_ROWS: Final = """
INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
SELECT trial_id, run, metric_group, kind, step, end_time, document::jsonb
  FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::integer[], $6::timestamptz[], $7::text[])
       AS report (trial_id, run, metric_group, kind, step, end_time, document)
RETURNING trial_id, id
"""
UPDATE_TRIALS: Final = """
UPDATE trials t SET total_batches = new.total_batches, summary_metrics = new.summary::jsonb
  FROM unnest($1::bigint[], $2::integer[], $3::text[]) AS new (id, total_batches, summary)
 WHERE t.id = new.id
RETURNING t.id, t.xmin
"""
STORE_NEWEST: Final = """
WITH report AS (
       SELECT *
         FROM json_to_recordset($1::json) AS report (
              trial_id bigint, version xid, run integer, metric_group text, kind text, step integer,
              end_time timestamptz, document jsonb, summary jsonb)
     ), unchanged AS MATERIALIZED (
       SELECT t.id
         FROM trials t
        WHERE t.id = ANY($2::bigint[])
          AND EXISTS (SELECT FROM report r WHERE r.trial_id = t.id AND r.version = t.xmin)
        ORDER BY t.id
          FOR NO KEY UPDATE OF t SKIP LOCKED
     ), updated AS (
       UPDATE trials t SET total_batches = r.step, summary_metrics = r.summary
         FROM report r JOIN unchanged ON unchanged.id = r.trial_id
        WHERE t.id = ANY($2::bigint[]) AND t.id = r.trial_id
       RETURNING t.id, t.xmin
     ), added AS (
       INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
       SELECT r.trial_id, r.run, r.metric_group, r.kind, r.step, r.end_time, r.document
         FROM report r JOIN unchanged ON unchanged.id = r.trial_id
     )
SELECT id, xmin FROM updated
"""


class FormerWriter:
    """One trial, as a service of the release before remembers it between reports.

    refused  how often a transaction was told to try again
    """

    def __init__(self, driver: asyncpg.Connection, trial_id: int) -> None:
        self._driver = driver
        self._trial_id = trial_id
        self._known: tuple[int, int, dict[str, Any]] | None = None
        self.refused = 0
        self.took_fast_path = 0

    async def store(self, report: Report) -> None:
        """Raises asyncpg.SerializationError when the last try is refused, which that release answers with 503."""
        assert report.step is not None
        if self._known is not None and report.step > self._known[1]:
            try:
                if await self._store_newest(report):
                    self.took_fast_path += 1
                    return
            except asyncpg.SerializationError:
                self.refused += 1
        for tries_left in reversed(range(TRIES)):
            try:
                async with self._driver.transaction():
                    await self._store_locked(report)
                return
            except asyncpg.SerializationError:
                self.refused += 1
                if not tries_left:
                    raise

    async def _store_newest(self, report: Report) -> bool:
        assert self._known is not None
        assert report.step is not None
        version, _, summary = self._known
        self._known = None
        fold(summary, report, newest=True)
        row = {
            "trial_id": self._trial_id,
            "version": version,
            "run": report.run,
            "metric_group": report.group,
            "kind": kind_of(report.group),
            "step": report.step,
            "end_time": report.time.isoformat(),
            "document": json.loads(_document(report)),
            "summary": summary,
        }
        written = await self._driver.fetch(STORE_NEWEST, json.dumps([row]), [self._trial_id])
        for _, new_version in written:
            self._known = (new_version, report.step, summary)
        return bool(written)

    async def _store_locked(self, report: Report) -> None:
        assert report.step is not None
        (trial,) = await self._driver.fetch(LOCK_TRIALS, [self._trial_id])
        assert trial["run_id"] == report.run
        summary, total = json.loads(trial["summary"]), trial["total_batches"]
        newest = True
        if report.step <= total:
            newest = not await self._driver.fetch(NEIGHBOURS, self._trial_id, report.group, report.step)
        fold(summary, report, newest=newest)
        kind = kind_of(report.group)
        columns = [self._trial_id, report.run, report.group, kind, report.step, report.time, _document(report)]
        await self._driver.fetch(INSERT_ROWS, *([value] for value in columns))
        total = max(total, report.step)
        ((_, version),) = await self._driver.fetch(UPDATE_TRIALS, [self._trial_id], [total], [json.dumps(summary)])
        self._known = (version, total, summary)


def fold(summary: dict[str, Any], report: Report, *, newest: bool) -> None:
    """Add a report of numbers to the document of a trial."""
    group = summary.setdefault(SUMMARY_KEYS.get(report.group, report.group), {})
    if newest:
        for each in group.values():
            each.pop("last", None)
    for name, value in report.avg.items():
        each = group.setdefault(name, {"type": "number", "count": 0, "sum": 0.0, "min": value, "max": value})
        each["count"] += 1
        each["sum"] += value
        each["mean"] = each["sum"] / each["count"]
        each["min"], each["max"] = min(each["min"], value), max(each["max"], value)
        if newest:
            each["last"] = value


def _document(report: Report) -> str:
    row = Row(run=report.run, group=report.group, step=report.step, time=report.time, avg=report.avg, batches=None)
    return json.dumps(row.document)
