"""The statements of levels."""

from __future__ import annotations

from typing import Final

from libs.db.tables.metrics import NOTHING_FOLDED, SUMMARY_LOCKS

WITH_LEVELS: Final = "SELECT trial_id, metric_group FROM metric_levels WHERE trial_id = ANY($1::bigint[])"
GENERATION: Final = "SELECT generation FROM metric_levels WHERE trial_id = $1 AND metric_group = $2"
STANDINGS: Final = """
SELECT l.metric_group, l.generation, l.sealed_step,
       (SELECT m.total_batches
          FROM metrics m
         WHERE m.trial_id = l.trial_id AND m.metric_group = l.metric_group AND NOT m.archived AND m.kind <> 'PROFILING'
         ORDER BY m.total_batches DESC
         LIMIT 1)
  FROM metric_levels l
 WHERE l.trial_id = $1 AND l.metric_group = ANY($2::text[])
"""

_SERIES: Final = """
 WHERE trial_id = $1 AND metric_group = $2 AND name_key = metric_name_key($3)"""
# One row for each name: its first chunk, its first one without an outline, which services of the release before have
# made, and outlines and hashes of those that have them.
OUTLINES: Final = """
SELECT min(chunk_no), min(chunk_no) FILTER (WHERE outline IS NULL),
       string_agg(outline, ''::bytea ORDER BY chunk_no), string_agg(steps_hash, ''::bytea ORDER BY chunk_no)
  FROM unnest($3::text[]) WITH ORDINALITY AS series (name, number)
  LEFT JOIN LATERAL (
       SELECT chunk_no, outline, steps_hash
         FROM metric_chunks
        WHERE trial_id = $1 AND metric_group = $2 AND name_key = metric_name_key(series.name)
          AND last_step >= $4 AND first_step <= $5
       OFFSET 0) AS chunk ON true
 GROUP BY number
 ORDER BY number
"""
EXTREMES: Final = f"""
SELECT string_agg(extremes, ''::bytea ORDER BY chunk_no), string_agg(positions, ''::bytea ORDER BY chunk_no)
  FROM metric_chunks {_SERIES} AND chunk_no = ANY($4::integer[])
"""  # noqa: S608  (of constants)
# A probe of the index for each part, which reads no more than the part: of which chunk, from which byte, and how many.
PARTS: Final = """
SELECT string_agg(part, ''::bytea ORDER BY number)
  FROM unnest($4::integer[], $5::integer[], $6::integer[]) WITH ORDINALITY AS wanted (chunk, place, size, number)
 CROSS JOIN LATERAL (
       SELECT substring(points FROM wanted.place + 1 FOR wanted.size) AS part
         FROM metric_chunks
        WHERE trial_id = $1 AND metric_group = $2 AND name_key = metric_name_key($3) AND chunk_no = wanted.chunk
       OFFSET 0) AS read
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
# Those that services of the release before have made are made once more, and all behind the first of them.
NEXT_CHUNK: Final = f"""
WITH series AS MATERIALIZED (SELECT chunk_no, last_step, outline IS NOT NULL AS is_whole FROM metric_chunks {_SERIES})
SELECT coalesce(max(chunk_no) + 1, 0), coalesce(max(last_step), {NOTHING_FOLDED})
  FROM series
 WHERE chunk_no < coalesce((SELECT min(chunk_no) FROM series WHERE NOT is_whole), 2147483647)
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
       INSERT INTO metric_chunks AS stored (trial_id, metric_group, name_key, chunk_no, first_step, last_step, extremes,
                                            points, outline, positions, steps_hash)
       SELECT current.trial_id, current.metric_group, metric_name_key($3), chunk.*
         FROM unnest($5::integer[], $6::integer[], $7::integer[], $8::bytea[], $9::bytea[], $10::bytea[], $11::bytea[],
                     $12::bytea[]) AS chunk
        CROSS JOIN current
       ON CONFLICT (trial_id, metric_group, name_key, chunk_no) DO UPDATE
          SET outline = excluded.outline, positions = excluded.positions, steps_hash = excluded.steps_hash
        WHERE stored.outline IS NULL
     )
SELECT EXISTS (SELECT FROM current)
"""
