"""Log lines per second from the intake to rows that can be read, against a bare COPY of the same rows."""

from __future__ import annotations

import asyncio
import gzip
import time
from datetime import UTC, datetime

import asyncpg
import msgspec

from libs.capture.lines import encode_line
from tests.bench.cpu import Spent, spent_s
from tests.bench.result import Result
from tests.bench.rows import BenchTrial, insert_trials
from tests.bench.system import BenchSystem
from tests.harness.raw_http import RawConnection

STREAMS = 4
CHUNKS = 10
LINES_PER_CHUNK = 5_000
ROUNDS = 5
GIVE_UP_S = 120
COLUMNS = (
    "task_id",
    "ingested_at",
    "allocation_id",
    "agent_id",
    "container_id",
    "timestamp",
    "level",
    "log",
    "source",
    "stdtype",
)
LINE = b"INFO: [4711] train: epoch %d: training loss 0.2501, validation accuracy 0.9612, learning rate 0.0010"


async def measure(system: BenchSystem) -> list[Result]:
    stored: list[Spent] = []
    copied: list[Spent] = []
    pids = system.pids()
    rows = _rows()
    for _ in range(ROUNDS):
        before = spent_s(pids)
        rate = await _copy(system.database_url, rows)
        copied.append(Spent(rate, spent_s(pids) - before))
        trials = await insert_trials(system.database_url, STREAMS)
        before = spent_s(pids)
        rate = await _ship(system, trials)
        stored.append(Spent(rate, spent_s(pids) - before))
    lines = STREAMS * CHUNKS * LINES_PER_CHUNK
    return [
        Result(
            name="log lines per second, intake to rows",
            value=max(spent.rate for spent in stored),
            unit="lines/s",
            baseline=max(spent.rate for spent in copied),
            goal=0.4,
            better="higher",
        ),
        Result(
            name="processor time of a log line",
            value=min(spent.cpu_s for spent in stored) / lines * 1e6,
            unit="us",
            baseline=min(spent.cpu_s for spent in copied) / lines * 1e6,
            goal=None,
            better="lower",
        ),
    ]


def chunk(number: int) -> bytes:
    """The body of one request of fluent-bit: gzip of concatenated ``[[time, {}], record]``."""
    first = number * LINES_PER_CHUNK
    encoder = msgspec.msgpack.Encoder()
    records = []
    for seq in range(first, first + LINES_PER_CHUNK):
        line = encode_line(seq, time.time_ns(), LINE % seq)[:-1]
        records.append(encoder.encode([[0, {}], {"path": "/run/detlogs/stdout.0.log", "offset": seq, "log": line}]))
    return gzip.compress(b"".join(records), compresslevel=1)


async def _ship(system: BenchSystem, trials: list[BenchTrial]) -> float:
    chunks = [chunk(number) for number in range(CHUNKS)]
    url = f"http://127.0.0.1:{system.options.logs_port}"

    async def one_stream(trial: BenchTrial) -> None:
        connection = await RawConnection.open(
            url,
            {
                "Authorization": f"Bearer {trial.token}",
                "Content-Type": "application/msgpack",
                "Content-Encoding": "gzip",
                "X-Det-Allocation": trial.allocation_id,
                "X-Det-Pod": trial.allocation_id,
                "X-Det-Node": "bench",
                "X-Det-Restart": "0",
            },
        )
        for body in chunks:
            await connection.send(connection.request("/ingest/v1/logs", body))
        connection.close()

    reader = await asyncpg.connect(system.database_url)
    total = STREAMS * CHUNKS * LINES_PER_CHUNK
    started_at = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for trial in trials:
            group.create_task(one_stream(trial))
    tasks = [trial.task_id for trial in trials]
    # How far the streams have come is committed with their lines; counting lines all the time would take half a core.
    while (await reader.fetchval("SELECT sum(next_seq) FROM log_streams WHERE task_id = ANY($1)", tasks) or 0) < total:
        if time.perf_counter() - started_at > GIVE_UP_S:
            raise RuntimeError("the lines did not arrive")
        await asyncio.sleep(0.01)
    rate = total / (time.perf_counter() - started_at)
    stored = await reader.fetchval("SELECT count(*) FROM task_logs WHERE task_id = ANY($1)", tasks)
    await reader.close()
    if stored != total:
        raise RuntimeError(f"{stored} lines of {total} were stored")
    return rate


def _rows() -> list[tuple[object, ...]]:
    now = datetime.now(UTC)
    return [
        (f"task-{index % STREAMS}", now, "allocation", "bench", "pod", now, "INFO", LINE % index, "task", "stdout")
        for index in range(STREAMS * CHUNKS * LINES_PER_CHUNK)
    ]


async def _copy(url: str, rows: list[tuple[object, ...]]) -> float:
    """Lines per second."""
    connection = await asyncpg.connect(url)
    await connection.execute("DROP TABLE IF EXISTS bench_logs")
    # Like the real one, which is partitioned by day.
    await connection.execute("CREATE TABLE bench_logs (LIKE task_logs INCLUDING ALL) PARTITION BY RANGE (ingested_at)")
    await connection.execute("CREATE TABLE bench_logs_all PARTITION OF bench_logs DEFAULT")
    started_at = time.perf_counter()
    await connection.copy_records_to_table("bench_logs", records=rows, columns=COLUMNS)
    rate = len(rows) / (time.perf_counter() - started_at)
    await connection.close()
    return rate
