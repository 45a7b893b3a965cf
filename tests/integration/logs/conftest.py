"""A logs service inside the test, and tasks whose pods may write."""

from __future__ import annotations

import asyncio
import gzip
import struct
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

import httpx
import msgpack  # type: ignore[import-untyped]
import msgspec
import pytest
from msgspec import Struct
from sqlalchemy import text

from libs.bus import BusSettings
from libs.capture.lines import encode_end, encode_line
from libs.db.connecting.pool import DriverPool, connect_pool
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database
from services.api.queries.tasks.log_following import read_logs
from services.api.queries.tasks.logs import LogFilter, LogRow
from services.logs.main import main
from services.logs.settings import IntakeSettings, LogsSettings, RetentionSettings, WriterSettings
from tests.builders import insert_allocation, insert_allocation_session, insert_task
from tests.harness import ServiceProcess
from tests.harness.no_tls import NO_TLS

_POOLS: WeakKeyDictionary[Database, DriverPool] = WeakKeyDictionary()
TIME = msgpack.ExtType(0, struct.pack(">II", 1_700_000_000, 0))


class Task(Struct, frozen=True, kw_only=True):
    task: str
    allocation: str
    token: str

    def headers(self, pod: str = "pod-0", **more: str) -> dict[str, str]:
        return {
            "authorization": f"Bearer {self.token}",
            "x-det-allocation": self.allocation,
            "x-det-pod": pod,
            "x-det-node": "node-1",
            **more,
        }


@pytest.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    settings = DatabaseSettings(url=database_url, connect_timeout_s=10)
    async with connect_database(settings) as database, connect_pool(settings) as pool:
        _POOLS[database] = pool
        yield database


def pool_of(db: Database) -> DriverPool:
    """What the service itself has on the same database."""
    return _POOLS[db]


async def new_task(
    db: Database, *, ended_at: datetime | None = None, revoked_at: datetime | None = None, started: bool = True
) -> Task:
    """A task with one allocation of one pod, and the token of its pod."""
    now = datetime.now(UTC)
    yesterday = now - timedelta(days=1)
    async with db.transaction() as connection:
        task = await insert_task(connection, task_id=f"1.{uuid4()}", start_time=yesterday, end_time=ended_at)
        row = {"state": "RUNNING", "requested_at": now, "start_time": now if started else None}
        allocation = await insert_allocation(connection, task_id=task, **row)
        token = await insert_allocation_session(connection, allocation_id=allocation, revoked_at=revoked_at)
    return Task(task=task, allocation=allocation, token=token)


@pytest.fixture
async def task(db: Database) -> Task:
    return await new_task(db)


def logs_settings(
    database_url: str, bus_settings: BusSettings, *, request_timeout_s: float = 10.0, **writer: Any
) -> LogsSettings:
    return LogsSettings(
        database=DatabaseSettings(url=database_url, connect_timeout_s=10, pool_size=5),
        bus=msgspec.structs.replace(bus_settings, request_timeout_s=request_timeout_s),
        intake=IntakeSettings(host="127.0.0.1", port=0),
        writer=WriterSettings(**{"heartbeat_s": 0.3, "name": "test", **writer}),
        retention=RetentionSettings(interval_s=3600),
    )


def service_process(
    database_url: str, bus_settings: BusSettings, *, log_path: Path, writer: str, port: int = 0
) -> ServiceProcess:
    """The service as a process of its own, with settings from the environment; not started yet."""
    return ServiceProcess(
        "services.logs.main",
        log_path=log_path,
        env={
            "RESOLUTE_DATABASE__URL": database_url,
            "RESOLUTE_BUS__URL": bus_settings.url,
            "RESOLUTE_INTAKE__HOST": "127.0.0.1",
            "RESOLUTE_INTAKE__PORT": str(port),
            "RESOLUTE_WRITER__NAME": writer,
        },
    )


class Service:
    """The service, running in the test's loop."""

    def __init__(self, settings: LogsSettings) -> None:
        self._settings = settings
        self._stop = asyncio.Event()
        self._port: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> httpx.AsyncClient:
        self._task = asyncio.create_task(main(self._settings, stop=self._stop, listening=self._port.set_result))
        await asyncio.wait((self._task, self._port), return_when=asyncio.FIRST_COMPLETED)
        if not self._port.done():
            self._task.result()
        self._client = httpx.AsyncClient(base_url=f"http://127.0.0.1:{self._port.result()}", timeout=20, verify=NO_TLS)
        return self._client

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()
        self._stop.set()
        async with asyncio.timeout(15):
            await self._task


@pytest.fixture
async def intake(database_url: str, bus_settings: BusSettings) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a running service."""
    async with Service(logs_settings(database_url, bus_settings)) as client:
        yield client


def chunk(payloads: Sequence[bytes], *, first: int = 0, ends: bool = False, stream: str = "stdout") -> bytes:
    """What fluent-bit sends for captured lines, as msgpack."""
    raws = [encode_line(first + index, 10**18 + first + index, payload) for index, payload in enumerate(payloads)]
    if ends:
        raws.append(encode_end(first + len(payloads), 10**18, 0))
    return b"".join(
        msgpack.packb([[TIME, {}], {"path": f"/logs/{stream}.0.log", "offset": index, "log": raw[:-1]}])
        for index, raw in enumerate(raws)
    )


async def post(
    client: httpx.AsyncClient, task: Task, body: bytes, *, compress: bool = False, pod: str = "pod-0", **headers: str
) -> int:
    sent = {**task.headers(pod), "content-type": "application/msgpack", **headers}
    if compress:
        body, sent["content-encoding"] = gzip.compress(body), "gzip"
    return (await client.post("/ingest/v1/logs", content=body, headers=sent)).status_code


async def lines_of(db: Database, task: Task) -> list[LogRow]:
    return [row async for page in read_logs(db, [task.task], LogFilter()) for row in page]


async def texts_of(db: Database, task: Task) -> list[bytes]:
    return [row.log for row in await lines_of(db, task)]


async def parked(db: Database) -> int:
    async with db.read() as connection:
        return int(await connection.scalar(text("SELECT count(*) FROM log_parked")) or 0)
