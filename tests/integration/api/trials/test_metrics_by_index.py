"""Reports of few trials are found among those of many by an index, which has to be asked in its own words."""

from __future__ import annotations

import json
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from libs.db.connecting.settings import asyncpg_url
from libs.db.engine import Database
from services.api.queries.checkpoints.best import best_checkpoints
from services.api.queries.checkpoints.checkpoints import list_checkpoints
from services.api.queries.trials.validation_history import validation_history
from services.api.wire.checkpoints.checkpoints import CheckpointSortBy, GetCheckpointsQuery
from tests.bench.reading.statements import statements_of

FILL = """
INSERT INTO experiments (state, config, original_config, owner_id, project_id, job_id, start_time)
SELECT 'COMPLETED', '{}', '', 1, 1, 'many' || n, now() FROM generate_series(1, 500) n;
INSERT INTO trials (experiment_id, project_id, request_id, state, start_time)
SELECT id, 1, 'many' || id, 'COMPLETED', now() FROM experiments;
INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
SELECT id, 1, 'validation', 'VALIDATION', step, now(), '{"validation_metrics": {"loss": 1}}'
FROM trials, generate_series(1, 20) step;
INSERT INTO checkpoints (uuid, task_id, trial_id, experiment_id, report_time, state, resources, steps_completed)
SELECT gen_random_uuid(), request_id, id, experiment_id, now(), 'COMPLETED', '{}', 20 FROM trials;
ANALYZE
"""
CONFIG = {"searcher": {"name": "single", "metric": "loss"}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def filled(database_url: str) -> str:
    connection = await asyncpg.connect(asyncpg_url(database_url))
    await connection.execute(FILL)
    await connection.close()
    return asyncpg_url(database_url)


async def test_the_validation_history_reads_the_reports_of_its_experiment_alone(filled: str) -> None:
    async def read(db: Database) -> object:
        async with db.read() as connection:
            return await validation_history(connection, 1, CONFIG)

    [statement] = await statements_of(filled, read)
    connection = await asyncpg.connect(filled)
    try:
        lines = await connection.fetch(f"EXPLAIN {statement.sql}", *statement.parameters)
    finally:
        await connection.close()
    plan = "\n".join(line for (line,) in lines)
    assert "Seq Scan on metrics" not in plan, plan
    assert "trial_id_metric_group_total_batches" in plan or "uq_metrics_step" in plan, plan


@pytest.mark.parametrize("trials", [[7], [7, 8, 9]])
async def test_a_plan_that_is_kept_finds_the_best_checkpoint_by_reports_of_its_trial(
    filled: str, trials: list[int]
) -> None:
    async def read(db: Database) -> object:
        async with db.read_prepared() as connection:
            return await best_checkpoints(connection, trials)

    [statement] = await statements_of(filled, read)
    connection = await asyncpg.connect(filled, server_settings={"plan_cache_mode": "force_generic_plan"})
    try:
        await connection.execute(f"PREPARE best AS {statement.sql}")
        wanted = str(set(trials)) if len(trials) > 1 else str(trials[0])
        lines = await connection.fetch(f"EXPLAIN EXECUTE best ('{wanted}')")
    finally:
        await connection.close()
    plan = "\n".join(line for (line,) in lines)
    assert "Seq Scan on metrics" not in plan, plan
    assert "trial_id_metric_group_total_batches" in plan or "uq_metrics_step" in plan, plan


async def test_best_checkpoints_are_found_by_the_reports_of_their_steps_alone(filled: str) -> None:
    wanted = list(range(1, 101))

    async def read(db: Database) -> object:
        async with db.read_prepared() as connection:
            return await best_checkpoints(connection, wanted)

    [statement] = await statements_of(filled, read)
    assert "size_bytes" not in statement.sql  # of what nobody shows
    connection = await asyncpg.connect(filled)
    try:
        rows = await connection.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.sql}", *statement.parameters)
    finally:
        await connection.close()
    assert _rows_of_reports(json.loads(rows[0][0])[0]["Plan"]) <= len(wanted)


def _rows_of_reports(plan: dict[str, Any]) -> float:
    own: float = plan["Actual Rows"] * plan["Actual Loops"] if "metrics" in plan.get("Relation Name", "") else 0
    return own + sum(map(_rows_of_reports, plan.get("Plans", ())))


@pytest.mark.parametrize(
    ("of", "sort"), [({"experiment_id": 7}, CheckpointSortBy.SEARCHER_METRIC), ({"trial_id": 7}, CheckpointSortBy.UUID)]
)
async def test_checkpoints_are_found_before_the_reports_of_their_steps(
    filled: str, of: dict[str, int], sort: CheckpointSortBy
) -> None:
    """However many reports the database expects of each, and however cheap processes to look through all tables are."""

    async def read(db: Database) -> object:
        query = GetCheckpointsQuery(sort_by_attr=sort)
        async with db.read() as connection:
            return await list_checkpoints(connection, query, reader_id=1, **of)

    *_, page = await statements_of(filled, read)
    cheap = {"parallel_setup_cost": "0", "parallel_tuple_cost": "0", "min_parallel_table_scan_size": "0"}
    connection = await asyncpg.connect(filled, server_settings=cheap)
    try:
        lines = await connection.fetch(f"EXPLAIN {page.sql}", *page.parameters)
    finally:
        await connection.close()
    plan = "\n".join(line for (line,) in lines)
    found = plan.partition("CTE found")[2].partition("Sort")[0]
    assert "Index Scan using ix_checkpoints_" in found, plan
    assert "Seq Scan on metrics" not in plan, plan
