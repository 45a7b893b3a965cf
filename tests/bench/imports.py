"""Metrics and log lines per second that an import from an old installation brings over, against a bare COPY of them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import asyncpg

from deploy.determined_import.importing import run_import
from libs.db.migrate import upgrade
from tests.bench.databases import empty_database
from tests.bench.result import Result
from tests.bench.system import BenchSystem
from tests.harness.determined.rows import add_lines, add_metrics, populate
from tests.harness.determined.schema import create_schema

ROWS = 1_000_000
METRICS = ("id", "trial_id", "trial_run_id", "metric_group", "kind", "total_batches", "end_time", "metrics", "archived")
LINES = ("task_id", "id", "ingested_at", "timestamp", "log", "searchable", "level", "stdtype", "allocation_id")
Add = Callable[[Any, int], Awaitable[None]]


async def measure(system: BenchSystem) -> list[Result]:
    return [
        await _imported(system, "metric rows", "metrics", METRICS, add_metrics, with_logs=False),
        await _imported(system, "log lines", "task_logs", LINES, add_lines, with_logs=True),
    ]


async def _imported(
    system: BenchSystem, what: str, table: str, columns: tuple[str, ...], add: Add, *, with_logs: bool
) -> Result:
    """Rows of a table per second; the few that are of anything else take no time."""
    with tempfile.TemporaryDirectory() as folder:
        async with empty_database(system) as old, empty_database(system) as new, empty_database(system) as bare:
            connection = await asyncpg.connect(old)
            await create_schema(connection)
            await populate(connection, Path(folder))
            await add(connection, ROWS)
            await connection.close()
            for url in (new, bare):
                await upgrade(url)
            began = time.perf_counter()
            report = await run_import(source_url=old, target_url=new, with_logs=with_logs, say=lambda _line: None)
            imported = ROWS / (time.perf_counter() - began)
            assert report.agrees
            copied = await _copy(new, bare, table, columns, Path(folder) / table)
    return Result(
        name=f"{what} per second, imported",
        value=imported,
        unit="rows/s",
        baseline=copied,
        goal=0.5,
        better="higher",
    )


async def _copy(source: str, target: str, table: str, columns: tuple[str, ...], file: Path) -> float:
    """Rows per second of a bare COPY from a file."""
    reading, writing = await asyncpg.connect(source), await asyncpg.connect(target)
    try:
        query = f"SELECT {', '.join(columns)} FROM {table}"
        await reading.copy_from_query(query, output=file, format="binary")
        began = time.perf_counter()
        await writing.copy_to_table(table, source=file, columns=columns, format="binary", timeout=None)
        return ROWS / (time.perf_counter() - began)
    finally:
        await reading.close()
        await writing.close()
