"""How fast summaries that are in columns are put into rows, and for how long that locks a trial."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import asyncpg

from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.db.migrate import upgrade
from services.api.metrics.rows.back_fill import BackFill, BackFillPace
from tests.bench.databases import empty_database
from tests.bench.result import Result
from tests.bench.system import BenchSystem
from tests.builders import insert_experiment

TRIALS: Final = 10_000
NAMES: Final = 100
WIDEST: Final = 100_000
MOST_LOCKED_MS: Final = 1_000

_OF_NAMES: Final = """
       SELECT jsonb_build_object('avg_metrics', jsonb_object_agg('layer.' || n || '.weight', jsonb_build_object(
              'type', 'number', 'count', 400, 'min', 0.125, 'max', 1.5, 'mean', 0.5 + n / 8.0, 'sum', 200 + n * 50.0,
              'last', 0.25))) FROM generate_series(1, $3::int) n"""
_INSERT: Final = f"""
INSERT INTO trials (experiment_id, project_id, state, start_time, end_time, total_batches, summary_metrics)
SELECT $1, 1, 'COMPLETED', now(), now(), 400, ({_OF_NAMES}) FROM generate_series(1, $2::int)
"""
_COPY: Final = "CREATE TABLE copied AS SELECT * FROM metric_summaries"


class _Watched:
    """An asyncpg connection that knows how long its longest transaction was, which is how long locks were held."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self.longest_s = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        began = time.perf_counter()
        async with self._driver.transaction():
            yield
        self.longest_s = max(self.longest_s, time.perf_counter() - began)


async def measure(system: BenchSystem) -> list[Result]:
    async with empty_database(system) as url:
        await upgrade(url)
        connection = await asyncpg.connect(url)
        try:
            async with connect_database(DatabaseSettings(url=url, pool_size=1)) as db, db.transaction() as tx:
                experiment = await insert_experiment(tx, state="COMPLETED", owner_id=2)
            await connection.execute("SET jit = off")
            await connection.execute(_INSERT, experiment, TRIALS, NAMES)
            await connection.execute(_INSERT, experiment, 1, WIDEST)
            return await _measure(connection)
        finally:
            await connection.close()


async def _measure(connection: Any) -> list[Result]:
    watched, back_fill = _Watched(connection), BackFill(BackFillPace(pauses=0))
    began = time.perf_counter()
    while await connection.fetchval("SELECT EXISTS (SELECT FROM trials WHERE NOT summary_in_rows)"):
        await back_fill.go_on(watched)
    moved_s = time.perf_counter() - began
    names = await connection.fetchval("SELECT count(*) FROM metric_summaries")
    assert names == TRIALS * NAMES + WIDEST
    began = time.perf_counter()
    await connection.execute(_COPY, timeout=None)
    copied_s = time.perf_counter() - began
    return [
        Result(
            name="summaries per second, put into rows",
            value=names / moved_s,
            unit="rows/s",
            baseline=names / copied_s,
            goal=None,
            better="higher",
        ),
        Result(
            name=f"longest lock of a trial meanwhile, of up to {WIDEST} names",
            value=watched.longest_s * 1e3,
            unit="ms",
            baseline=MOST_LOCKED_MS,
            goal=1,
            better="lower",
        ),
    ]
