"""Rows that benchmarks report to: an experiment with trials whose allocation is open, written without running any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import func

from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Connection, connect_database
from libs.ids import new_uuid
from services.api.metrics.rows.promotion import promote
from tests.builders import insert_allocation, insert_allocation_session, insert_experiment, insert_task, insert_trial

_AT_ONCE: Final = 5_000
_IN_COLUMNS: Final = "SELECT id FROM trials WHERE NOT summary_in_rows AND summary_metrics <> '{}' ORDER BY id"
_LOCK: Final = "SELECT id FROM trials WHERE id = ANY($1) AND NOT summary_in_rows ORDER BY id FOR NO KEY UPDATE"


@dataclass(frozen=True)
class BenchTrial:
    trial_id: int
    task_id: str
    allocation_id: str
    token: str


async def insert_trials(url: str, count: int) -> list[BenchTrial]:
    """Trials of an experiment that is over, so that no scheduler touches them; reports of run 1 are accepted."""
    config = {"searcher": {"name": "single", "metric": "loss", "smaller_is_better": True}}
    over = {"state": "COMPLETED", "owner_id": 2, "end_time": func.now()}
    async with connect_database(DatabaseSettings(url=url, pool_size=1)) as db, db.transaction() as connection:
        experiment = await insert_experiment(connection, config=config, **over)
        return [await _insert_trial(connection, experiment) for _ in range(count)]


async def keep_in_rows(connection: Any) -> None:
    """Put the summaries of trials that were written as documents into rows, with an asyncpg connection; else the api
    would do so while something is measured."""
    ids = [ident for (ident,) in await connection.fetch(_IN_COLUMNS)]
    for first in range(0, len(ids), _AT_ONCE):
        async with connection.transaction():
            locked = await connection.fetch(_LOCK, ids[first : first + _AT_ONCE])
            await promote(connection, [ident for (ident,) in locked])


async def _insert_trial(connection: Connection, experiment: int) -> BenchTrial:
    request_id = new_uuid()
    trial = await insert_trial(connection, experiment_id=experiment, request_id=request_id, state="COMPLETED", run_id=1)
    task = await insert_task(connection, task_id=f"{experiment}.{request_id}", trial_id=trial, owner_id=2)
    over = {"state": "TERMINATED", "released_at": func.now(), "exit_processed": True}
    allocation = await insert_allocation(connection, task_id=task, job_id="", name="bench", slots=0, **over)
    token = await insert_allocation_session(connection, allocation_id=allocation, owner_id=2)
    return BenchTrial(trial, task, allocation, token)
