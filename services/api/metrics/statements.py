"""The statements of one batch of reports; each handles the whole batch.

Rows are locked without their keys: new rows elsewhere that only refer to them do not have to wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

LOCK_EXPERIMENTS: Final = """
SELECT e.id, e.state, e.unmanaged, e.job_id, e.project_id, e.progress, coalesce(e.config ->> 'name', '') AS name,
       (SELECT u.username FROM users u WHERE u.id = e.owner_id) AS owner, e.config -> 'searcher' ->> 'metric' AS metric,
       (e.config -> 'searcher' ->> 'smaller_is_better') IS DISTINCT FROM 'false' AS smaller_is_better,
       (SELECT b.searcher_metric_signed FROM trials b WHERE b.id = e.best_trial_id) AS best_signed
  FROM experiments e
 WHERE e.id IN (SELECT t.experiment_id FROM trials t WHERE t.id = ANY($1::bigint[]))
 ORDER BY e.id
   FOR NO KEY UPDATE OF e
"""

LOCK_TRIALS: Final = """
SELECT id, experiment_id, state, run_id, total_batches,
       CASE WHEN NOT summary_in_rows THEN summary_metrics::text END AS summary,
       searcher_metric_value, searcher_metric_signed, best_validation_id, latest_validation_id, restarts,
       (SELECT t.task_id FROM trial_tasks t WHERE t.trial_id = trials.id ORDER BY t.position DESC LIMIT 1) AS task_id
  FROM trials
 WHERE id = ANY($1::bigint[])
 ORDER BY id
   FOR NO KEY UPDATE
"""

# One probe per report and group of its trial, so that each is a range of the index of steps.
NEIGHBOURS: Final = """
SELECT probe.report, m.id, m.trial_run_id, m.metric_group, m.kind, m.total_batches,
       CASE WHEN m.metric_group = probe.own_group AND m.total_batches = probe.step THEN m.metrics::text END AS metrics
  FROM unnest($1::integer[], $2::bigint[], $3::integer[], $4::integer[], $5::text[], $6::text[])
       AS probe (report, trial_id, run, step, own_group, metric_group)
 CROSS JOIN LATERAL (
       SELECT * FROM metrics m
        WHERE m.trial_id = probe.trial_id AND m.metric_group = probe.metric_group AND m.total_batches >= probe.step
          AND NOT m.archived AND m.kind <> 'PROFILING'
          AND (m.trial_run_id < probe.run OR m.metric_group = probe.own_group)
       OFFSET 0
       ) m
"""

ARCHIVE: Final = """
UPDATE metrics m SET archived = true
  FROM unnest($1::bigint[], $2::bigint[]) AS gone (trial_id, id)
 WHERE m.trial_id = gone.trial_id AND m.id = gone.id
"""

# Once reports are archived, and before any is inserted.
FORGET_LEVELS: Final = "SELECT forget_levels($1::bigint[], $2::text[], $3::integer[])"

INSERT_ROWS: Final = """
INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
SELECT trial_id, run, metric_group, kind, step, end_time, document::jsonb
  FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::integer[], $6::timestamptz[], $7::text[])
       AS report (trial_id, run, metric_group, kind, step, end_time, document)
RETURNING trial_id, id
"""

# Profiling reports have no step by which a repeated request would be known.
INSERT_PROFILING: Final = """
INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, end_time, metrics)
SELECT DISTINCT trial_id, run, metric_group, 'PROFILING', end_time, document::jsonb
  FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::timestamptz[], $5::text[])
       AS report (trial_id, run, metric_group, end_time, document)
 WHERE NOT EXISTS (
       SELECT FROM metrics m
        WHERE m.trial_id = report.trial_id AND m.metric_group = report.metric_group AND m.kind = 'PROFILING'
          AND m.end_time = report.end_time AND m.metrics = report.document::jsonb)
"""

REPLACE_METRICS: Final = """
UPDATE metrics m SET metrics = merged.document::jsonb
  FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS merged (trial_id, id, document)
 WHERE m.trial_id = merged.trial_id AND m.id = merged.id
"""

UPDATE_TRIALS: Final = """
UPDATE trials t SET total_batches = new.total_batches, summary_metrics = new.summary::jsonb
  FROM unnest($1::bigint[], $2::integer[], $3::text[]) AS new (id, total_batches, summary)
 WHERE t.id = new.id
RETURNING t.id, t.xmin
"""

# The trials' ids come beside the reports, so that their rows are found by index whatever the planner thinks of JSON.
# Rows that somebody else has locked are about to change: they are not waited for.
_STORE_NEWEST: Final = """
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
"""
_ENQUEUED: Final = """
     , enqueued AS (
       INSERT INTO outbox (subject, headers, payload)
       SELECT subject, headers::jsonb, payload
         FROM unnest($3::text[], $4::text[], $5::bytea[]) WITH ORDINALITY
              AS message (subject, headers, payload, position)
        ORDER BY position
     )
"""
# Two statements, because inserting nothing into the outbox wakes its relay all the same.
STORE_NEWEST: Final = _STORE_NEWEST + "SELECT id, xmin FROM updated"  # noqa: S608  (of constants)
STORE_NEWEST_AND_ENQUEUE: Final = _STORE_NEWEST + _ENQUEUED + "SELECT id, xmin FROM updated"  # noqa: S608

UPDATE_STANDINGS: Final = """
UPDATE trials t
   SET searcher_metric_value = new.value, searcher_metric_signed = new.signed,
       best_validation_id = new.best_id, latest_validation_id = new.latest_id
  FROM unnest($1::bigint[], $2::float8[], $3::float8[], $4::bigint[], $5::bigint[])
       AS new (id, value, signed, best_id, latest_id)
 WHERE t.id = new.id
"""

UPDATE_BEST_TRIALS: Final = """
UPDATE experiments e SET best_trial_id = best.id
  FROM (SELECT DISTINCT ON (experiment_id) experiment_id, id
          FROM trials
         WHERE experiment_id = ANY($1::bigint[]) AND searcher_metric_signed IS NOT NULL
         ORDER BY experiment_id, searcher_metric_signed, id) AS best
 WHERE e.id = best.experiment_id AND e.best_trial_id IS DISTINCT FROM best.id
"""

TELL_SEARCHERS: Final = """
INSERT INTO searcher_events (experiment_id, trial_id, kind, payload)
SELECT experiment_id, trial_id, 'validation', payload::jsonb
  FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS told (experiment_id, trial_id, payload)
"""

SURVIVING_STEPS: Final = """
SELECT coalesce(max(total_batches), 0) FROM metrics WHERE trial_id = $1 AND NOT archived AND kind <> 'PROFILING'
"""

SURVIVING_VALIDATIONS: Final = """
SELECT id, (metrics -> 'validation_metrics')::text AS metrics
  FROM metrics
 WHERE trial_id = $1 AND metric_group = 'validation' AND NOT archived AND kind <> 'PROFILING'
 ORDER BY total_batches, id
"""

ENQUEUE: Final = """
INSERT INTO outbox (subject, headers, payload)
SELECT subject, headers::jsonb, payload
  FROM unnest($1::text[], $2::text[], $3::bytea[]) WITH ORDINALITY AS message (subject, headers, payload, position)
 ORDER BY position
"""


def columns(rows: Iterable[tuple[Any, ...]]) -> list[list[Any]]:
    """Rows, of which there is at least one, as the array parameters of a statement."""
    return [list(column) for column in zip(*rows, strict=True)]
