"""Many experiments with many runs, written by the database itself: what is read has to be found among others.

One experiment has all that a page of trials may show: validations, checkpoints, tasks that have run. A queue of jobs
waits for more slots than there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import asyncpg

from tests.bench.rows import keep_in_rows

EXPERIMENTS: Final = 10_000
RUNS_EACH: Final = 10
VALIDATIONS: Final = 20
QUEUED: Final = 100
_SHOWN: Final = 100
_CONFIG: Final = """jsonb_build_object(
    'name', 'bench ' || e, 'description', 'one of many', 'labels', jsonb_build_array('bench', 'l' || e % 50),
    'entrypoint', 'python3 train.py', 'max_restarts', 5, 'resources', '{"slots_per_trial": 1}'::jsonb,
    'searcher', '{"name": "random", "metric": "loss", "smaller_is_better": true, "max_trials": 10}'::jsonb,
    'hyperparameters', '{"lr": {"type": "log", "base": 10, "minval": -4, "maxval": -1}, "width": 64}'::jsonb)"""
_HPARAMS: Final = "jsonb_build_object('lr', abs(hashint4(t)) / 2147483648.0, 'width', 32 * (1 + t % 8))"
_LOSS: Final = "(abs(hashint4(t + 7)) / 2147483648.0)"
_SUMMARY: Final = f"""jsonb_build_object(
    'avg_metrics', jsonb_build_object('loss', jsonb_build_object(
        'type', 'number', 'count', 100, 'min', {_LOSS}, 'max', 1.5, 'mean', 0.9, 'sum', 90, 'last', {_LOSS})),
    'validation_metrics', jsonb_build_object('loss', jsonb_build_object(
        'type', 'number', 'count', 20, 'min', {_LOSS}, 'max', 1.5, 'mean', 0.9, 'sum', 18, 'last', {_LOSS})))"""


@dataclass(frozen=True)
class BenchRuns:
    """experiment_id has ``_SHOWN`` trials, of which trial_id is the first."""

    experiment_id: int
    trial_id: int


async def insert_many(url: str, *, experiments: int = EXPERIMENTS) -> BenchRuns:
    """Experiments that are over, so that no scheduler touches them; once for all benchmarks of a run."""
    connection = await asyncpg.connect(url)
    try:
        there = await connection.fetchrow("SELECT experiment_id, id FROM trials WHERE request_id = 'shown-1'")
        if there is not None:
            return BenchRuns(there["experiment_id"], there["id"])
        first = await connection.fetchval("SELECT coalesce(max(id), 0) + 1 FROM experiments")
        await _experiments(connection, experiments)
        await connection.execute(
            f"""INSERT INTO trials (experiment_id, project_id, local_id, request_id, hparams, state, restarts, run_id,
                                    start_time, end_time, total_batches, summary_metrics, searcher_metric_value,
                                    searcher_metric_signed)
                SELECT e.id, 1, t, 'bench-' || t, {_HPARAMS}, (ARRAY['COMPLETED', 'ERROR', 'CANCELED'])[1 + t % 3],
                       0, 1, now() - interval '2 hours', now(), 100, {_SUMMARY}, {_LOSS}, {_LOSS}
                FROM experiments e, generate_series(1, $1) each, LATERAL (SELECT e.id::int * 100 + each) number(t)
                WHERE e.id >= $2""",
            RUNS_EACH,
            first,
        )
        await connection.execute(
            """UPDATE experiments e SET best_trial_id = (SELECT id FROM trials t WHERE t.experiment_id = e.id
               ORDER BY searcher_metric_signed, id LIMIT 1) WHERE e.id >= $1""",
            first,
        )
        shown = await _experiments(connection, 1)
        trial = await _shown_trials(connection, shown)
        await _queue(connection)
        await keep_in_rows(connection)
        await connection.execute("VACUUM ANALYZE")
        return BenchRuns(shown, trial)
    finally:
        await connection.close()


async def _experiments(connection: asyncpg.Connection, count: int) -> int:
    """The id of the last one."""
    await connection.execute(
        f"""INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, progress, start_time,
                                     end_time)
            SELECT 'COMPLETED', {_CONFIG}, 'name: bench', 2, 1, gen_random_uuid()::text, 1,
                   now() - interval '2 hours', now() FROM generate_series(1, $1) e""",
        count,
    )
    return int(await connection.fetchval("SELECT max(id) FROM experiments"))


async def _shown_trials(connection: asyncpg.Connection, experiment: int) -> int:
    """The id of the first one."""
    await connection.execute(
        f"""INSERT INTO trials (experiment_id, project_id, local_id, request_id, hparams, state, run_id, start_time,
                                end_time, total_batches, summary_metrics, searcher_metric_value, searcher_metric_signed)
            SELECT $1, 1, t, 'shown-' || t, {_HPARAMS}, 'COMPLETED', 1, now() - interval '2 hours', now(), 100,
                   {_SUMMARY}, {_LOSS}, {_LOSS} FROM generate_series(1, $2) t""",
        experiment,
        _SHOWN,
    )
    await connection.execute(
        """INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
           SELECT id, 1, 'validation', 'VALIDATION', step, now(),
                  jsonb_build_object('validation_metrics', jsonb_build_object('loss', 1.0 / step, 'accuracy', 0.5))
           FROM trials, generate_series(1, $2) step WHERE experiment_id = $1""",
        experiment,
        VALIDATIONS,
    )
    await connection.execute(
        """UPDATE trials t SET latest_validation_id = m.id, best_validation_id = m.id
           FROM metrics m WHERE m.trial_id = t.id AND t.experiment_id = $1 AND m.total_batches = $2""",
        experiment,
        VALIDATIONS,
    )
    for statement in (
        """INSERT INTO tasks (task_id, task_type, owner_id, experiment_id, start_time, end_time)
           SELECT request_id, 'TRIAL', 2, experiment_id, start_time, end_time FROM trials WHERE experiment_id = $1""",
        """INSERT INTO trial_tasks (trial_id, position, task_id)
           SELECT id, 0, request_id FROM trials WHERE experiment_id = $1""",
        """INSERT INTO allocations (allocation_id, task_id, job_id, name, pool, slots, state, requested_at, start_time,
                                    end_time, released_at, exit_processed)
           SELECT request_id || '.1', request_id, 'over', 'bench', 'default', 0, 'TERMINATED', start_time, start_time,
                  end_time, end_time, true FROM trials WHERE experiment_id = $1""",
        """INSERT INTO checkpoints (uuid, task_id, trial_id, experiment_id, report_time, state, resources,
                                    steps_completed, size_bytes)
           SELECT gen_random_uuid(), request_id, id, experiment_id, now(), 'COMPLETED', '{"state": 100}', step, 100
           FROM trials, generate_series(10, 20, 10) step WHERE experiment_id = $1""",
    ):
        await connection.execute(statement, experiment)
    first = await connection.fetchval("SELECT min(id) FROM trials WHERE experiment_id = $1", experiment)
    return int(first)


async def _queue(connection: asyncpg.Connection) -> None:
    last = await _experiments(connection, QUEUED)
    await connection.execute(
        """INSERT INTO jobs (job_id, job_type, owner_id, pool, submitted_at)
           SELECT job_id, 'EXPERIMENT', 2, 'default', start_time FROM experiments WHERE id > $1""",
        last - QUEUED,
    )
    for statement in (
        """INSERT INTO tasks (task_id, task_type, job_id, owner_id, experiment_id, start_time)
           SELECT 'queued-' || id, 'TRIAL', job_id, 2, id, now() FROM experiments WHERE id > $1""",
        """INSERT INTO allocations (allocation_id, task_id, job_id, name, pool, slots, state, requested_at)
           SELECT 'queued-' || id || '.1', 'queued-' || id, job_id, 'bench', 'default', 100, 'PENDING', now()
           FROM experiments WHERE id > $1""",
    ):
        await connection.execute(statement, last - QUEUED)
