"""Databases as years of use leave them, written by PostgreSQL itself: experiments that are over, with all they had.

Two of different sizes have the same people, places, models and queue, so that most answers are as long on both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import asyncpg

from tests.bench.reading.large_others import insert_others
from tests.bench.reading.large_trials import insert_long_trial, insert_shown_trials, insert_wide_trial
from tests.bench.rows import keep_in_rows

USERS: Final = 20
WORKSPACES: Final = 10
PROJECTS: Final = 40
MODELS: Final = 50
QUEUED: Final = 20


@dataclass(frozen=True)
class Size:
    """How many experiments there are, names one trial has reported, and points there are of one metric of another."""

    experiments: int
    names: int
    points: int


SMALL: Final = Size(experiments=100, names=10, points=1_000)
LARGE: Final = Size(experiments=100_000, names=100_000, points=1_000_000)


@dataclass(frozen=True)
class LargeRows:
    """Ids: ``shown`` is the experiment of 100 trials of the usual kind, whose first is ``trial``."""

    shown: int
    trial: int
    wide: int
    wide_experiment: int
    long: int
    long_experiment: int
    checkpoint: str
    task: str
    token: int


_CONFIG: Final = """jsonb_build_object(
    'name', 'run ' || e, 'description', 'attempt ' || e % 97,
    'labels', jsonb_build_array('team' || e % 7, 'l' || e % 50),
    'entrypoint', 'python3 train.py', 'max_restarts', 5, 'data', '{"path": "/data/images", "split": 0.9}'::jsonb,
    'resources', '{"slots_per_trial": 1, "resource_pool": "default"}'::jsonb,
    'checkpoint_storage', '{"type": "directory", "container_path": "/checkpoints"}'::jsonb,
    'searcher', '{"name": "random", "metric": "loss", "smaller_is_better": true, "max_trials": 4}'::jsonb,
    'hyperparameters', '{"lr": {"type": "log", "base": 10, "minval": -4, "maxval": -1}, "width": 64}'::jsonb)"""
_LOSS: Final = "(abs(hashint4(e.id::int * 4 + n)) / 2147483648.0)"
_NUMBER: Final = f"""jsonb_build_object('type', 'number', 'count', 4, 'min', {_LOSS}, 'max', {_LOSS} + 1,
    'mean', {_LOSS} + 0.5, 'sum', 4 * {_LOSS} + 2, 'last', {_LOSS})"""
_OF_MANY: Final = (
    f"""INSERT INTO users (username, display_name, admin, active)
        SELECT 'person' || n, 'Person ' || n, false, true FROM generate_series(1, {USERS}) n""",
    f"""INSERT INTO workspaces (name, owner_id) SELECT 'team ' || n, 2 FROM generate_series(1, {WORKSPACES}) n""",
    f"""INSERT INTO projects (workspace_id, name, key, owner_id)
        SELECT (SELECT min(id) FROM workspaces WHERE name = 'team ' || 1 + n % {WORKSPACES}), 'project ' || n,
               'P' || lpad(n::text, 4, '0'), 2 FROM generate_series(1, {PROJECTS}) n""",
    "INSERT INTO project_keys (key, project_id) SELECT key, id FROM projects ON CONFLICT DO NOTHING",
    # Half of all are in one project, as where somebody never moved any.
    f"""INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, progress, archived,
                                 start_time, end_time, checkpoint_size, checkpoint_count)
        SELECT (ARRAY['COMPLETED', 'COMPLETED', 'COMPLETED', 'ERROR', 'CANCELED'])[1 + e % 5], {_CONFIG},
               'name: run', (SELECT min(id) FROM users) + 1 + e % {USERS},
               CASE WHEN e % 2 = 0 THEN 1 ELSE
                   (SELECT min(id) FROM projects WHERE name = 'project ' || 1 + e % {PROJECTS}) END,
               'job-' || e, 1, e % 20 = 0, now() - (e || ' minutes')::interval,
               now() - (e || ' minutes')::interval + interval '30 minutes', 100, 1
        FROM generate_series($1::int, 1, -1) e""",
    """INSERT INTO jobs (job_id, job_type, owner_id, pool, submitted_at)
       SELECT job_id, 'EXPERIMENT', owner_id, 'default', start_time FROM experiments""",
    f"""INSERT INTO trials (experiment_id, project_id, local_id, request_id, hparams, state, run_id, start_time,
                            end_time, total_batches, searcher_metric_value, searcher_metric_signed, summary_metrics)
        SELECT e.id, e.project_id, e.id, 'r' || e.id || '-' || n,
               jsonb_build_object('lr', abs(hashint4(e.id::int + n)) / 2147483648.0, 'width', 32 * (1 + e.id % 8)),
               CASE e.state WHEN 'ERROR' THEN 'ERROR' ELSE 'COMPLETED' END, 1, e.start_time, e.end_time, 400,
               {_LOSS}, {_LOSS},
               jsonb_build_object('avg_metrics', jsonb_build_object('loss', {_NUMBER}, 'lr', {_NUMBER}),
                                  'validation_metrics', jsonb_build_object('loss', {_NUMBER}, 'accuracy', {_NUMBER}))
        FROM experiments e, LATERAL generate_series(1, CASE WHEN e.id % 5 = 0 THEN 4 ELSE 1 END) n""",
    """INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
       SELECT t.id, 1, g.name, g.kind, step, t.start_time + (step || ' seconds')::interval,
              jsonb_build_object(g.key, jsonb_build_object('loss', 1.0 / step, g.other, 0.5))
       FROM trials t, generate_series(100, 400, 100) step,
            (VALUES ('training', 'TRAINING', 'avg_metrics', 'lr'),
                    ('validation', 'VALIDATION', 'validation_metrics', 'accuracy')) g (name, kind, key, other)""",
    """UPDATE trials t SET latest_validation_id = m.id, best_validation_id = m.id FROM metrics m
       WHERE m.trial_id = t.id AND m.metric_group = 'validation' AND m.total_batches = 400""",
    """UPDATE experiments e SET best_trial_id = best.id FROM (SELECT DISTINCT ON (experiment_id) experiment_id, id
       FROM trials ORDER BY experiment_id, searcher_metric_signed, id) best WHERE best.experiment_id = e.id""",
    """INSERT INTO tasks (task_id, task_type, job_id, experiment_id, owner_id, start_time, end_time)
       SELECT e.id || '.' || t.request_id, 'TRIAL', e.job_id, e.id, e.owner_id, t.start_time, t.end_time
       FROM trials t JOIN experiments e ON e.id = t.experiment_id""",
    """INSERT INTO trial_tasks (trial_id, position, task_id)
       SELECT id, 0, experiment_id || '.' || request_id FROM trials""",
    """INSERT INTO allocations (allocation_id, task_id, job_id, name, pool, slots, state, requested_at, start_time,
                                end_time, released_at, exit_processed)
       SELECT task_id || '.1', task_id, job_id, 'trial', 'default', 1, 'TERMINATED', start_time, start_time, end_time,
              end_time, true FROM tasks""",
    """INSERT INTO checkpoints (uuid, task_id, trial_id, experiment_id, report_time, state, resources, metadata,
                                steps_completed, size_bytes)
       SELECT gen_random_uuid(), experiment_id || '.' || request_id, id, experiment_id, end_time, 'COMPLETED',
              '{"state": 100}', '{"steps_completed": 400}', 400, 100 FROM trials""",
    f"""INSERT INTO models (name, owner_id, workspace_id)
        SELECT 'model-' || n, 2, 1 FROM generate_series(1, {MODELS}) n""",
    """INSERT INTO model_versions (model_id, version, checkpoint_uuid, owner_id)
       SELECT m.id, 1, (SELECT uuid FROM checkpoints WHERE experiment_id = m.id LIMIT 1), 2 FROM models m""",
)
_QUEUE: Final = (
    """INSERT INTO jobs (job_id, job_type, owner_id, pool, submitted_at)
       SELECT 'queued-' || n, 'EXPERIMENT', 2, 'default', now() FROM generate_series(1, $1::int) n""",
    f"""INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, progress, start_time,
                                 end_time)
        SELECT 'COMPLETED', {_CONFIG}, 'name: run', 2, 1, 'queued-' || e, 1, now(), now()
        FROM generate_series(1, $1::int) e""",
    """INSERT INTO tasks (task_id, task_type, job_id, owner_id, experiment_id, start_time)
       SELECT 'queued-' || id, 'TRIAL', job_id, 2, id, now() FROM experiments WHERE job_id LIKE 'queued-%'""",
    """INSERT INTO allocations (allocation_id, task_id, job_id, name, pool, slots, state, requested_at)
       SELECT task_id || '.1', task_id, job_id, 'trial', 'default', 100, 'PENDING', now() FROM tasks
       WHERE task_id LIKE 'queued-%'""",
)


async def insert_large(url: str, size: Size) -> LargeRows:
    """Fill the database at ``url``, which nobody has used yet; some minutes for the large size."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET synchronous_commit = off; SET work_mem = '256MB'; SET jit = off")
        for statement in _OF_MANY:
            await _execute(connection, statement, size.experiments)
        shown, trial = await insert_shown_trials(connection)
        wide_experiment, wide = await insert_wide_trial(connection, size.names)
        long_experiment, long = await insert_long_trial(connection, size.points)
        for statement in _QUEUE:
            await _execute(connection, statement, QUEUED)
        await insert_others(connection)
        await keep_in_rows(connection)
        await connection.execute("VACUUM ANALYZE")
        return LargeRows(
            shown=shown,
            trial=trial,
            wide=wide,
            wide_experiment=wide_experiment,
            long=long,
            long_experiment=long_experiment,
            checkpoint=await connection.fetchval("SELECT uuid FROM checkpoints WHERE trial_id = $1 LIMIT 1", trial),
            task=await connection.fetchval("SELECT task_id FROM trial_tasks WHERE trial_id = $1", trial),
            token=await connection.fetchval("SELECT max(id) FROM user_sessions WHERE token_type = 'ACCESS'"),
        )
    finally:
        await connection.close()


async def _execute(connection: asyncpg.Connection, statement: str, count: int) -> None:
    await connection.execute(statement, *([count] if "$1" in statement else []))
