"""The statements of summaries in rows."""

from __future__ import annotations

from typing import Final

from libs.db.tables.metrics import NOTHING_FOLDED, SUMMARY_LOCKS

APPEND: Final = """
SELECT trial_id, metric_group, step
  FROM append_reports($1::bigint[], $2::json, $3::text[], $4::text[], $5::bytea[])
"""

# Returns once no report of the trials is being appended; until the transaction ends none will be.
LOCK_SUMMARIES: Final = f"""
SELECT pg_advisory_xact_lock({SUMMARY_LOCKS}, (id % 2147483647)::integer)
  FROM (SELECT unnest($1::bigint[]) AS id ORDER BY 1) AS ordered
"""  # noqa: S608  (of constants)
TRY_LOCK_SUMMARY: Final = f"SELECT pg_try_advisory_xact_lock({SUMMARY_LOCKS}, ($1::bigint % 2147483647)::integer)"

_GROUPS: Final = """
SELECT g.trial_id, g.metric_group, g.summary_id, g.run_id, g.folded_step,
       (SELECT m.total_batches
          FROM metrics m
         WHERE m.trial_id = g.trial_id AND m.metric_group = g.metric_group AND NOT m.archived AND m.kind <> 'PROFILING'
         ORDER BY m.total_batches DESC
         LIMIT 1) AS newest_step
  FROM metric_groups g
 WHERE g.trial_id = ANY($1::bigint[])
"""
GROUPS: Final = _GROUPS + " ORDER BY g.trial_id, g.metric_group"
LOCK_GROUPS: Final = GROUPS + " FOR NO KEY UPDATE OF g"
# Not the summary that was looked at any more: nothing, and whoever made it anew has folded what there was.
LOCK_GROUP: Final = _GROUPS + " AND g.metric_group = $2 AND g.summary_id = $3 FOR NO KEY UPDATE OF g"

ADD_GROUP: Final = """
INSERT INTO metric_groups (trial_id, metric_group, run_id) VALUES ($1, $2, $3) RETURNING summary_id
"""
BEGIN_ANEW: Final = """
UPDATE metric_groups SET summary_id = nextval('metric_summary_ids')
 WHERE trial_id = $1 AND metric_group = $2
RETURNING summary_id
"""
UPDATE_GROUP: Final = """
UPDATE metric_groups SET run_id = $3, folded_step = $4, change_no = change_no + 1
 WHERE trial_id = $1 AND metric_group = $2
"""

# No more than so many bytes, beginning with the first report whatever it has; ``found``: how many there were without
# that. The size of a value is known without reading it.
TAIL: Final = """
SELECT total_batches, coalesce(metrics -> 'avg_metrics', metrics -> 'validation_metrics')::text AS metrics, found
  FROM (SELECT total_batches, id, metrics, count(*) OVER () AS found,
               sum(pg_column_size(metrics)) OVER (ORDER BY total_batches, id) - pg_column_size(metrics) AS bytes_before
          FROM (SELECT total_batches, id, metrics
                  FROM metrics
                 WHERE trial_id = $1 AND metric_group = $2 AND total_batches > $3 AND total_batches <= $4
                   AND NOT archived AND kind <> 'PROFILING'
                 ORDER BY total_batches, id
                 LIMIT $5) AS next) AS sized
 WHERE bytes_before < $6
 ORDER BY total_batches, id
"""
SUMMARIES_OF_NAMES: Final = """
SELECT name, summary::text, last::text, last_step
  FROM metric_summaries
 WHERE summary_id = $1 AND name_key = ANY(ARRAY(SELECT metric_name_key(name) FROM unnest($2::text[]) AS name))
"""
STORE_SUMMARIES: Final = """
INSERT INTO metric_summaries (summary_id, name_key, name, summary, last, last_step)
SELECT $1, metric_name_key(name), name, summary::jsonb, last::jsonb, last_step
  FROM unnest($2::text[], $3::text[], $4::text[], $5::integer[]) AS folded (name, summary, last, last_step)
ON CONFLICT (summary_id, name_key)
DO UPDATE SET summary = excluded.summary, last = excluded.last, last_step = excluded.last_step
"""

MARK: Final = """
INSERT INTO metric_marks (trial_id) SELECT unnest($1::bigint[]) ORDER BY 1 ON CONFLICT DO NOTHING
"""
TAKE_BACK_STEPS: Final = "UPDATE trials SET total_batches = $2 WHERE id = $1"

# As rows of a trial are when its column is true: all reports are folded.
FORGET_GROUPS: Final = "DELETE FROM metric_groups WHERE trial_id = ANY($1::bigint[])"
GROUPS_OF_COLUMN: Final = f"""
INSERT INTO metric_groups (trial_id, metric_group, run_id, folded_step)
SELECT t.id, groups.metric_group, -1,
       coalesce((SELECT max(m.total_batches)
                   FROM metrics m
                  WHERE m.trial_id = t.id AND m.metric_group = groups.metric_group AND NOT m.archived
                    AND m.kind <> 'PROFILING'), {NOTHING_FOLDED})
  FROM trials t
 CROSS JOIN LATERAL (
       SELECT CASE key WHEN 'avg_metrics' THEN 'training' WHEN 'validation_metrics' THEN 'validation' ELSE key END
              AS metric_group
         FROM jsonb_object_keys(t.summary_metrics) AS key) AS groups
 WHERE t.id = ANY($1::bigint[])
"""  # noqa: S608  (of constants)
SUMMARIES_OF_COLUMN: Final = f"""
INSERT INTO metric_summaries (summary_id, name_key, name, summary, last, last_step)
SELECT g.summary_id, metric_name_key(each.key), each.key, each.value - 'last', each.value -> 'last',
       CASE WHEN each.value ? 'last' THEN g.folded_step ELSE {NOTHING_FOLDED} END
  FROM trials t
  JOIN metric_groups g ON g.trial_id = t.id
 CROSS JOIN LATERAL jsonb_each(
       t.summary_metrics
       -> CASE g.metric_group WHEN 'training' THEN 'avg_metrics' WHEN 'validation' THEN 'validation_metrics'
          ELSE g.metric_group END) AS each
 WHERE t.id = ANY($1::bigint[])
"""  # noqa: S608  (of constants)
KEEP_IN_ROWS: Final = "UPDATE trials SET summary_in_rows = true WHERE id = ANY($1::bigint[])"

LOCK_TRIAL: Final = "SELECT summary_in_rows FROM trials WHERE id = $1 FOR NO KEY UPDATE"
WRITE_COLUMN: Final = """
UPDATE trials t
   SET total_batches = greatest(t.total_batches, $2), summary_in_rows = $3,
       summary_metrics = coalesce(
         (SELECT jsonb_object_agg(
                   CASE g.metric_group WHEN 'training' THEN 'avg_metrics' WHEN 'validation' THEN 'validation_metrics'
                   ELSE g.metric_group END,
                   coalesce(
                     (SELECT jsonb_object_agg(
                               s.name,
                               CASE WHEN s.last IS NOT NULL AND s.last_step = g.folded_step
                               THEN s.summary || jsonb_build_object('last', s.last) ELSE s.summary END)
                        FROM metric_summaries s
                       WHERE s.summary_id = g.summary_id), '{}'))
            FROM metric_groups g
           WHERE g.trial_id = t.id), '{}')
 WHERE t.id = $1
"""
# For the trigger that keeps services of the release before from writing a summary that lacks reports.
WRITES_ROWS: Final = "SELECT set_config('resolute.summary_writer', 'rows', true)"
UNMARK: Final = "DELETE FROM metric_marks WHERE trial_id = $1"
MARKED: Final = "SELECT trial_id FROM metric_marks ORDER BY marked_at, trial_id"
