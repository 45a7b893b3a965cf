"""Workloads of a trial with thousands of reports: a page is what a plain list has there, and costs what it shows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import asyncpg
import httpx
import msgspec
import pytest
import pytest_asyncio

from libs.bus import Bus
from libs.db.connecting.settings import asyncpg_url
from libs.db.engine import Database
from services.api.http.replies.reply import encode_message
from services.api.metrics.rows.settling import settle
from services.api.queries.trials.landmarks import EVERY, Landmarks
from services.api.queries.trials.workloads import list_workloads
from services.api.wire.ordering import OrderBy
from services.api.wire.trials.metrics import GetWorkloadsQuery, GetWorkloadsResponse, WorkloadFilter
from tests.bench.reading.statements import Statement, statements_of
from tests.harness import FakeClock
from tests.harness.seeds import chance
from tests.integration.api.tasks.service import Run, new_run, replica, set_trial
from tests.integration.api.trials.test_metrics import accepted

REPORTS: Final = 7_000
_FILL: Final = (
    """INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
       SELECT $1, 1, 'training', 'TRAINING', 2 * n, '2029-01-01'::timestamptz + n % 1000 * interval '1 s',
              jsonb_build_object('avg_metrics', jsonb_build_object('loss', n), 'batch_metrics', '[{"loss": 1}]'::jsonb)
       FROM generate_series(1, $2::int) n""",
    """INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
       SELECT $1, 1, 'validation', 'VALIDATION', 3 * n, '2029-01-01'::timestamptz + n % 700 * interval '1 s',
              jsonb_build_object('validation_metrics', jsonb_build_object('loss', -n))
       FROM generate_series(1, $2::int / 2) n""",
    """INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics, archived)
       SELECT $1, 0, 'training', 'TRAINING', n, now(), '{}', true FROM generate_series(1, $2::int / 9) n""",
    """INSERT INTO checkpoints (uuid, task_id, trial_id, report_time, state, metadata, steps_completed)
       SELECT gen_random_uuid(), 'none', $1, '2029-01-01'::timestamptz + n % 5 * interval '1 s',
              CASE n % 3 WHEN 0 THEN 'DELETED' ELSE 'COMPLETED' END, '{"batch_metrics": 1}',
              CASE WHEN n % 50 > 0 THEN n / 2 * 90 END
       FROM generate_series(1, $2::int / 45) n""",
    """UPDATE trials SET total_batches = 2 * $2::int, summary_metrics = jsonb_build_object(
           'avg_metrics', '{"loss": {"type": "number", "count": 1, "sum": 1, "min": 1, "max": 1, "mean": 1}}'::jsonb,
           'validation_metrics', '{"loss": {"type": "number", "count": 1, "sum": 1, "min": 1, "max": 1, "mean": 1}}'
           ::jsonb) WHERE id = $1""",
)
_MORE: Final = """
INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
SELECT $1, 1, 'training', 'TRAINING', $2::int + n, '2030-01-01', jsonb_build_object('avg_metrics',
       jsonb_build_object('loss', n)) FROM generate_series(1, 4000) n
"""
_PLAIN: Final = """
SELECT what, total_batches, loss
  FROM (SELECT metric_group AS what, total_batches, end_time, id::text AS ident,
               (coalesce(metrics -> 'avg_metrics', metrics -> 'validation_metrics') ->> 'loss')::float AS loss
          FROM metrics
         WHERE trial_id = $1 AND NOT archived AND kind IN ('TRAINING', 'VALIDATION')
         UNION ALL
        SELECT 'checkpoint', coalesce(steps_completed, 0), report_time, uuid, NULL
          FROM checkpoints WHERE trial_id = $1 AND NOT ($2 AND state = 'DELETED')) AS work
 ORDER BY total_batches, end_time, ident
"""
_KINDS: Final = {
    "FILTER_OPTION_UNSPECIFIED": {"training", "validation", "checkpoint"},
    "FILTER_OPTION_CHECKPOINT": {"validation", "checkpoint"},
    "FILTER_OPTION_VALIDATION": {"validation"},
}
Entry = tuple[str, int, float | None]


@pytest.fixture
async def driver(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(asyncpg_url(database_url))
    yield connection
    await connection.close()


@pytest_asyncio.fixture
async def long_run(db: Database, driver: asyncpg.Connection) -> Run:
    run = await new_run(db)
    for statement in _FILL:
        await driver.execute(statement, run.trial, *([REPORTS] if "$2" in statement else []))
    await driver.execute("ANALYZE metrics, checkpoints")
    return run


async def _asked(client: httpx.AsyncClient, run: Run, **query: Any) -> tuple[list[Entry], int]:
    """A page, and how many entries there are in all."""
    response = await client.get(f"/api/v1/trials/{run.trial}/workloads", params=query)
    assert response.status_code == 200, response.text
    answer = response.json()
    page = []
    for workload in answer["workloads"]:
        ((kind, entry),) = workload.items()
        if kind == "checkpoint":
            assert entry["metadata"] == {"batch_metrics": 1}
        else:
            assert entry["metrics"]["batchMetrics"] == []
        page.append((kind, entry["totalBatches"], entry.get("metrics", {}).get("avgMetrics", {}).get("loss")))
    return page, answer["pagination"]["total"]


async def _check_pages(client: httpx.AsyncClient, driver: asyncpg.Connection, run: Run) -> None:
    """Pages anywhere, in both directions, with each filter, are slices of the plain list."""
    random = chance()
    for remove in (False, True):
        plain = [tuple(row) for row in await driver.fetch(_PLAIN, run.trial, remove)]
        for wanted, kinds in _KINDS.items():
            expected = [entry for entry in plain if entry[0] in kinds]
            for order, entries in (("ORDER_BY_ASC", expected), ("ORDER_BY_DESC", expected[::-1])):
                offsets = [0, len(entries) - 7, -20, *(random.randrange(len(entries)) for _ in range(3))]
                for offset in offsets:
                    page, total = await _asked(
                        client,
                        run,
                        offset=offset,
                        limit=30,
                        orderBy=order,
                        filter=wanted,
                        removeDeletedCheckpoints=str(remove).lower(),
                    )
                    start = offset if offset >= 0 else len(entries) + offset
                    assert (total, page) == (len(entries), entries[start : start + 30]), (offset, order, wanted)


@pytest.mark.parametrize("in_rows", [False, True])
async def test_pages_are_slices_of_the_list(
    db: Database, bus: Bus, clock: FakeClock, driver: asyncpg.Connection, long_run: Run, *, in_rows: bool
) -> None:
    run = long_run
    async with (
        replica(db, bus, clock, to_rows=lambda: in_rows) as api,
        api.client(headers=run.headers) as client,
    ):
        await _check_pages(client, driver, run)
        for step in (2 * REPORTS + 2, 2 * REPORTS + 4):  # behind all others
            await accepted(client, run, step=step, loss=step)
        await _check_pages(client, driver, run)
        if in_rows:
            await settle(driver, run.trial)
            await _check_pages(client, driver, run)
            await driver.execute(_MORE, run.trial, 2 * REPORTS + 4)
            await accepted(client, run, step=3 * REPORTS, loss=1)
            await settle(driver, run.trial)
            await _check_pages(client, driver, run)
        await accepted(client, run, step=101, loss=0.125)  # between others
        await accepted(client, run, "validation", 1, loss=0.25)
        await _check_pages(client, driver, run)
        await set_trial(db, run.trial, run_id=2)
        await accepted(client, run, step=REPORTS + 1, run_id=2, loss=0.5)  # what was behind it is taken back
        await _check_pages(client, driver, run)
        everything, total = await _asked(client, run)
        assert len(everything) == total


_LONG: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"limit": 6_001, "offset": 37},
    {"limit": -1, "offset": -5_500, "order_by": OrderBy.DESC},
    {"limit": 9_000, "filter": WorkloadFilter.VALIDATION, "remove_deleted_checkpoints": True},
    {"include_batch_metrics": True, "limit": 1_000_000, "order_by": OrderBy.DESC},
)


@pytest.mark.parametrize("coding", ["gzip", "identity"])
async def test_a_long_list_is_sent_by_pages_and_reads_as_a_whole_one(
    db: Database, bus: Bus, clock: FakeClock, long_run: Run, coding: str
) -> None:
    run = long_run
    path = f"/api/v1/trials/{run.trial}/workloads"
    async with replica(db, bus, clock) as api, api.client(headers=run.headers) as client:
        for asked in _LONG:
            query = GetWorkloadsQuery(**asked)
            params = json.loads(msgspec.json.encode(query))
            response = await client.get(path, params=params, headers={"accept-encoding": coding})
            async with db.read() as connection:
                workloads, pagination = await list_workloads(connection, run.trial, query, Landmarks())
            assert response.content == encode_message(GetWorkloadsResponse(workloads=workloads, pagination=pagination))
            assert "content-length" not in response.headers, "nobody has had all of it in memory"
            assert response.headers.get("content-encoding") == ("gzip" if coding == "gzip" else None)
        few = await client.get(path, params={"offset": -20})
        assert len(few.json()["workloads"]) == 20
        assert int(few.headers["content-length"]) > 0
        assert (await client.get(path, params={"limit": -2})).json()["workloads"] == []
        assert (await client.get(path, params={"limit": -3})).status_code == 400


async def test_landmarks_outlive_what_is_folded_behind_them(driver: asyncpg.Connection, long_run: Run) -> None:
    trial, landmarks = long_run.trial, Landmarks()
    await driver.execute("UPDATE trials SET summary_in_rows = true WHERE id = $1", trial)
    await driver.execute(
        "INSERT INTO metric_groups (trial_id, metric_group, run_id, folded_step) VALUES ($1, 'training', 1, $2)",
        trial,
        2 * REPORTS,
    )

    async def group() -> tuple[int, list[int]]:
        (found,) = await landmarks.groups(driver, trial, ["training"])
        return found.total, list(found.steps)

    every = [2 * n for n in range(EVERY + 1, REPORTS, EVERY)]
    assert await group() == (REPORTS, every)
    await driver.execute(_MORE, trial, 2 * REPORTS)
    assert await group() == (REPORTS + 4000, every), "what is behind the summary may still get company"
    fold = "UPDATE metric_groups SET folded_step = $2, change_no = change_no + 1 WHERE trial_id = $1"
    await driver.execute(fold, trial, 2 * REPORTS + 4000)
    total, steps = await group()
    assert (total, steps[: len(every)], len(steps)) == (REPORTS + 4000, every, (REPORTS + 4000 - 1) // EVERY)
    await driver.execute("UPDATE metrics SET total_batches = 3 WHERE trial_id = $1 AND total_batches = 18000", trial)
    await driver.execute(fold, trial, 2 * REPORTS + 4000)
    assert (await group())[1][0] == every[0] - 2, "a late report is before all landmarks"


async def test_a_page_reads_what_it_shows(driver: asyncpg.Connection, database_url: str, long_run: Run) -> None:
    """Wherever it is: a few hundred rows more, also of a plan that was made for any trial."""
    landmarks = Landmarks()

    def page(offset: int) -> Any:
        query = GetWorkloadsQuery(offset=offset, limit=20)

        async def read(db: Database) -> object:
            async with db.read() as connection:
                return await list_workloads(connection, long_run.trial, query, landmarks)

        return read

    for plans in ("force_custom_plan", "force_generic_plan"):
        await driver.execute(f"SET plan_cache_mode = {plans}")
        for offset in (0, REPORTS // 2, REPORTS, -20):
            statements = await statements_of(asyncpg_url(database_url), page(offset))
            rows = sum([await _rows_read(driver, each) for each in statements])
            assert 0 < rows < REPORTS / 3, (plans, offset, rows)


async def _rows_read(driver: asyncpg.Connection, statement: Statement) -> int:
    """By all scans of the statement."""
    await driver.execute(f"PREPARE asked AS {statement.sql}")
    given = ", ".join(_literal(parameter) for parameter in statement.parameters)
    explained = await driver.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON, TIMING OFF) EXECUTE asked ({given})")
    await driver.execute("DEALLOCATE asked")
    return int(_rows_of(json.loads(explained)[0]["Plan"]))


def _literal(parameter: Any) -> str:
    return f"'{{{','.join(map(str, parameter))}}}'" if isinstance(parameter, list) else f"'{parameter}'"


def _rows_of(plan: dict[str, Any]) -> float:
    own = 0.0
    if "Relation Name" in plan:
        own = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return own + sum(_rows_of(part) for part in plan.get("Plans", ()))
