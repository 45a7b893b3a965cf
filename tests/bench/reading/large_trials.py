"""Experiments among the many whose trials are looked at: a hundred usual ones, a wide one and a long one."""

from __future__ import annotations

from typing import Final

import asyncpg

SHOWN: Final = 100
_EXPERIMENT: Final = """INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, progress,
                                                 start_time, end_time)
SELECT 'COMPLETED', jsonb_build_object('name', $1::text) || (config - 'name'), 'name: run', 2, $2, $1, 1,
       now() - interval '2 hours', now() FROM experiments ORDER BY id LIMIT 1 RETURNING id"""
_TRIALS: Final = """INSERT INTO trials (experiment_id, project_id, local_id, request_id, hparams, state, run_id,
                                        start_time, end_time, total_batches, searcher_metric_value,
                                        searcher_metric_signed)
SELECT $1, (SELECT project_id FROM experiments WHERE id = $1), n, $2 || n,
       jsonb_build_object('lr', n / 100.0, 'width', 64), 'COMPLETED', 1, now() - interval '2 hours', now(), 20,
       1.0 / n, 1.0 / n FROM generate_series(1, $3) n"""
_NUMBER: Final = (
    """'{"type": "number", "count": 20, "min": 0.05, "max": 1, "mean": 0.2, "sum": 4, "last": 0.05}'::jsonb"""
)
_AROUND: Final = (
    """INSERT INTO tasks (task_id, task_type, owner_id, experiment_id, start_time, end_time)
       SELECT request_id, 'TRIAL', 2, experiment_id, start_time, end_time FROM trials WHERE experiment_id = $1""",
    """INSERT INTO trial_tasks (trial_id, position, task_id)
       SELECT id, 0, request_id FROM trials WHERE experiment_id = $1""",
    """INSERT INTO allocations (allocation_id, task_id, job_id, name, pool, slots, state, requested_at, start_time,
                                end_time, released_at, exit_processed)
       SELECT request_id || '.1', request_id, 'over', 'trial', 'default', 0, 'TERMINATED', start_time, start_time,
              end_time, end_time, true FROM trials WHERE experiment_id = $1""",
    """INSERT INTO checkpoints (uuid, task_id, trial_id, experiment_id, report_time, state, resources, metadata,
                                steps_completed, size_bytes)
       SELECT gen_random_uuid(), request_id, id, experiment_id, now(), 'COMPLETED', '{"state": 100}',
              '{"steps_completed": 20}', step, 100
       FROM trials, generate_series(10, 20, 10) step WHERE experiment_id = $1""",
    """INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
       SELECT id, 1, 'validation', 'VALIDATION', step, now() - interval '1 hour' + (step || ' seconds')::interval,
              jsonb_build_object('validation_metrics', jsonb_build_object('loss', 1.0 / step, 'accuracy', 0.5))
       FROM trials, generate_series(1, 20) step WHERE experiment_id = $1""",
    """UPDATE trials t SET latest_validation_id = m.id, best_validation_id = m.id
       FROM metrics m WHERE m.trial_id = t.id AND t.experiment_id = $1 AND m.total_batches = 20""",
    """UPDATE experiments SET best_trial_id = (SELECT min(id) FROM trials WHERE experiment_id = $1) WHERE id = $1""",
)


async def insert_shown_trials(connection: asyncpg.Connection) -> tuple[int, int]:
    """An experiment of 100 usual trials: its id, and that of its first trial."""
    summary = f"jsonb_build_object('validation_metrics', jsonb_build_object('loss', {_NUMBER}, 'accuracy', {_NUMBER}))"
    return await _insert(connection, "shown", 1, SHOWN, summary, 0)


async def insert_wide_trial(connection: asyncpg.Connection, names: int) -> tuple[int, int]:
    """An experiment whose only trial has reported so many names in training, a hundred a report; both ids."""
    summary = f"""jsonb_build_object(
        'validation_metrics', jsonb_build_object('loss', {_NUMBER}, 'accuracy', {_NUMBER}),
        'avg_metrics', (SELECT jsonb_object_agg('layer' || n / 100 || '.head' || n % 100, {_NUMBER})
                        FROM generate_series(0, $2::int - 1) n))"""
    experiment, trial = await _insert(connection, "wide", await _other_project(connection), 1, summary, names)
    await connection.execute(
        """INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
           SELECT $1, 1, 'training', 'TRAINING', step, now(), jsonb_build_object('avg_metrics', (
               SELECT jsonb_object_agg('layer' || n / 100 || '.head' || n % 100, 1.0 / step)
               FROM generate_series(100 * (step - 1), least(100 * step, $2) - 1) n))
           FROM generate_series(1, ($2 + 99) / 100) step""",
        trial,
        names,
    )
    return experiment, trial


async def insert_long_trial(connection: asyncpg.Connection, points: int) -> tuple[int, int]:
    """An experiment whose only trial has reported a loss so many times in training; both ids."""
    summary = f"""jsonb_build_object(
        'validation_metrics', jsonb_build_object('loss', {_NUMBER}, 'accuracy', {_NUMBER}),
        'avg_metrics', jsonb_build_object('loss', {_NUMBER} || jsonb_build_object('count', $2::int)))"""
    experiment, trial = await _insert(connection, "long", await _other_project(connection), 1, summary, points)
    await connection.execute(
        """INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
           SELECT $1, 1, 'training', 'TRAINING', step, now() - interval '1 day' + (step || ' ms')::interval,
                  jsonb_build_object('avg_metrics', jsonb_build_object('loss', abs(hashint4(step)) / 2147483648.0))
           FROM generate_series(1, $2::int) step""",
        trial,
        points,
    )
    await connection.execute("UPDATE trials SET total_batches = $2 WHERE id = $1", trial, points)
    return experiment, trial


async def _other_project(connection: asyncpg.Connection) -> int:
    """So that the tables of the first one have no more columns in one database than in the other."""
    return int(await connection.fetchval("SELECT max(id) FROM projects"))


async def _insert(
    connection: asyncpg.Connection, name: str, project: int, trials: int, summary: str, count: int
) -> tuple[int, int]:
    """``summary`` is an expression of SQL, in which $2 is ``count``."""
    experiment = int(await connection.fetchval(_EXPERIMENT, name, project))
    await connection.execute(_TRIALS, experiment, f"{name}-", trials)
    for statement in _AROUND:
        await connection.execute(statement, experiment)
    change = f"UPDATE trials SET summary_metrics = {summary} WHERE experiment_id = $1"
    await connection.execute(change, *([experiment, count] if "$2" in summary else [experiment]))
    return experiment, int(await connection.fetchval("SELECT min(id) FROM trials WHERE experiment_id = $1", experiment))
