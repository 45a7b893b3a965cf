"""The statements of levels."""

from __future__ import annotations

from typing import Final

from libs.db.tables.metrics import NOTHING_FOLDED, SUMMARY_LOCKS

WITH_LEVELS: Final = "SELECT trial_id, metric_group FROM metric_levels WHERE trial_id = ANY($1::bigint[])"
GENERATION: Final = "SELECT generation FROM metric_levels WHERE trial_id = $1 AND metric_group = $2"

_SERIES: Final = """
 WHERE trial_id = $1 AND metric_group = $2 AND name_key = metric_name_key($3)"""
EXTREMES: Final = f"""
SELECT min(chunk_no), max(last_step), string_agg(extremes, ''::bytea ORDER BY chunk_no)
  FROM metric_chunks {_SERIES} AND last_step >= $4 AND first_step <= $5
"""  # noqa: S608  (of constants)
# A probe of the index for each block, which reads no more than the block.
BLOCKS: Final = """
SELECT string_agg(part, ''::bytea ORDER BY number)
  FROM unnest($4::integer[]) AS number
 CROSS JOIN LATERAL (
       SELECT substring(points FROM number % $5 * $6 + 1 FOR $6) AS part
         FROM metric_chunks
        WHERE trial_id = $1 AND metric_group = $2 AND name_key = metric_name_key($3) AND chunk_no = number / $5
       OFFSET 0) AS block
"""

# Whoever is writing reports holds the one or shares the other, unless these are profiling. Neither is waited for. An
# import, which takes no such locks, is known by its connection, and by what it has written down until it is finished.
LOCK_TRIAL: Final = "SELECT true FROM trials WHERE id = $1 FOR NO KEY UPDATE SKIP LOCKED"
LOCK_SUMMARY: Final = f"SELECT pg_try_advisory_xact_lock({SUMMARY_LOCKS}, ($1::bigint % 2147483647)::integer)"
SEAL: Final = """
INSERT INTO metric_levels AS l (trial_id, metric_group, sealed_step)
SELECT $1, $2, newest.step
  FROM (SELECT max(total_batches) AS step
          FROM metrics
         WHERE trial_id = $1 AND metric_group = $2 AND NOT archived AND kind <> 'PROFILING') AS newest
 WHERE newest.step IS NOT NULL
   AND NOT EXISTS (SELECT FROM imports WHERE finished_at IS NULL)
   AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = $3)
ON CONFLICT (trial_id, metric_group) DO UPDATE SET sealed_step = excluded.sealed_step
RETURNING generation, sealed_step
"""
NEWEST_CHUNK: Final = f"""
SELECT coalesce(max(chunk_no) + 1, 0), coalesce(max(last_step), {NOTHING_FOLDED}) FROM metric_chunks {_SERIES}
"""  # noqa: S608  (of constants)
# The next so many reports of the group, of which those up to the sealed step and with the metric count: how many there
# were, the last step, and steps and numbers. As many as are read, and in the order of the index: what cannot be an end
# of its range is compared outside, and so is what the planner would take for rare, and sort all that is left for it.
NEXT_POINTS: Final = """
SELECT count(*), max(total_batches), array_agg(total_batches) FILTER (WHERE is_point),
       '[' || string_agg(CASE jsonb_typeof(value) WHEN 'number' THEN value::text ELSE 'null' END, ',')
                FILTER (WHERE is_point) || ']'
  FROM (SELECT total_batches, document -> $4 AS value, total_batches <= $6 AND document ? $4 AS is_point
          FROM (SELECT total_batches, metrics -> $3 AS document
                  FROM metrics
                 WHERE trial_id = $1 AND metric_group = $2 AND NOT archived AND kind <> 'PROFILING'
                   AND total_batches > $5
                 ORDER BY total_batches
                 LIMIT $7) AS report) AS next
"""
# Of the generation that was sealed, whose row keeps whoever wants to forget them waiting until they are committed.
# Whoever is forgetting just now is not waited for.
STORE_CHUNKS: Final = """
WITH current AS MATERIALIZED (
       SELECT trial_id, metric_group
         FROM metric_levels
        WHERE trial_id = $1 AND metric_group = $2 AND generation = $4
          FOR SHARE SKIP LOCKED
     ), added AS (
       INSERT INTO metric_chunks (trial_id, metric_group, name_key, chunk_no, first_step, last_step, extremes, points)
       SELECT current.trial_id, current.metric_group, metric_name_key($3), chunk.*
         FROM unnest($5::integer[], $6::integer[], $7::integer[], $8::bytea[], $9::bytea[]) AS chunk
        CROSS JOIN current
       ON CONFLICT DO NOTHING
     )
SELECT EXISTS (SELECT FROM current)
"""
