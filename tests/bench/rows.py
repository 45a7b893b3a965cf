"""Rows that benchmarks report to: an experiment with trials whose allocation is open, written without running any."""

from __future__ import annotations

from dataclasses import dataclass

import asyncpg

from libs.ids import new_uuid
from libs.tokens import digest, new_token


@dataclass(frozen=True)
class BenchTrial:
    trial_id: int
    task_id: str
    allocation_id: str
    token: str


async def insert_trials(url: str, count: int) -> list[BenchTrial]:
    """Trials of an experiment that is over, so that no scheduler touches them; reports of run 1 are accepted."""
    connection = await asyncpg.connect(url)
    try:
        config = '{"searcher": {"name": "single", "metric": "loss", "smaller_is_better": true}}'
        experiment = await connection.fetchval(
            "INSERT INTO experiments"
            " (state, config, original_config, owner_id, project_id, job_id, start_time, end_time)"
            " VALUES ('COMPLETED', $1::jsonb, '', 2, 1, $2, now(), now()) RETURNING id",
            config,
            new_uuid(),
        )
        return [await _insert_trial(connection, experiment) for _ in range(count)]
    finally:
        await connection.close()


async def _insert_trial(connection: asyncpg.Connection, experiment: int) -> BenchTrial:
    request_id, token = new_uuid(), new_token()
    task, allocation = f"{experiment}.{request_id}", f"{experiment}.{request_id}.1"
    trial = await connection.fetchval(
        "INSERT INTO trials (experiment_id, project_id, request_id, state, run_id, start_time)"
        " VALUES ($1, 1, $2, 'COMPLETED', 1, now()) RETURNING id",
        experiment,
        request_id,
    )
    await connection.execute(
        "INSERT INTO tasks (task_id, task_type, owner_id, start_time) VALUES ($1, 'TRIAL', 2, now())", task
    )
    await connection.execute("INSERT INTO trial_tasks (trial_id, position, task_id) VALUES ($1, 0, $2)", trial, task)
    await connection.execute(
        "INSERT INTO allocations (allocation_id, task_id, job_id, name, pool, slots, state, requested_at, released_at,"
        " settled) VALUES ($1, $2, '', 'bench', 'default', 0, 'TERMINATED', now(), now(), true)",
        allocation,
        task,
    )
    await connection.execute(
        "INSERT INTO allocation_sessions (allocation_id, owner_id, token_hash) VALUES ($1, 2, $2)",
        allocation,
        digest(token),
    )
    return BenchTrial(trial, task, allocation, token)
