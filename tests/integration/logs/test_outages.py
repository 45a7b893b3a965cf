"""Outages of any part between a task and its log cost time, never a line and never the order.

With the fluent-bit on the PATH if there is one, else with something that behaves like it.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from deploy.local.servers.ports import free_port
from libs.bus import BusSettings
from libs.capture.lines import STREAMS, encode_end, encode_line, segment_name
from libs.db.engine import Database
from services.launcher.backends.kubernetes.settings import ShipperSettings
from services.launcher.container.settings import TaskSettings
from services.logs.intake.completeness import completeness_of
from services.logs.lines.streams import LineOrigin
from services.logs.settings import IntakeSettings, LogsSettings
from tests.harness import NatsServer, eventually
from tests.harness.fluent_bit import Sidecar
from tests.harness.waiting import PATIENCE_S
from tests.integration.logs.conftest import Service, Task, lines_of, logs_settings, pool_of, service_process

pytestmark = pytest.mark.chaos

CHUNKS: Final = 300
"""More than were ever allowed to wait, and more gaps than were ever remembered."""
BURST_BYTES: Final = 20 * 2**20


class Pod:
    """A task that prints, as its capture wrapper writes it, and the shipper beside it."""

    def __init__(self, root: Path, task: Task, url: str) -> None:
        self.logs = root / "logs"
        self.logs.mkdir()
        self.printed = 0
        self._files = [(self.logs / segment_name(stream, 0)).open("ab", buffering=0) for stream in STREAMS]
        self._sidecar = Sidecar(
            self.logs,
            token=task.token,
            allocation=task.allocation,
            pod="pod-0",
            tasks=TaskSettings(log_intake_url=url),
            shipper=ShipperSettings(flush_s=0.05),
        )
        self._shipper: subprocess.Popen[bytes] | None = None

    @contextmanager
    def shipped(self) -> Iterator[None]:
        """Beside a shipper, which may be killed."""
        try:
            with self._sidecar.running() as self._shipper:
                yield
        finally:
            self._shipper = None

    def print(self, count: int = 1, *, width: int = 10) -> None:
        """So many lines to both outputs, each with its number."""
        for file in self._files:
            seqs = range(self.printed, self.printed + count)
            file.write(b"".join(encode_line(seq, time.time_ns(), b"%0*d" % (width, seq)) for seq in seqs))
        self.printed += count

    def end(self) -> None:
        for file in self._files:
            file.write(encode_end(self.printed, time.time_ns(), 0))
            file.close()

    async def pile_up(self, chunks: int) -> None:
        """Print until so many chunks wait to be delivered."""

        def enough() -> bool:
            self.print()
            return self._waiting() >= chunks

        await eventually(enough)

    def _waiting(self) -> int:
        return sum(path.suffix in (".flb", ".chunk") for path in self.logs.glob(".flb/*/*"))


def at(settings: LogsSettings, port: int) -> LogsSettings:
    return msgspec.structs.replace(settings, intake=IntakeSettings(host="127.0.0.1", port=port))


async def assert_all_is_in_order(db: Database, task: Task, pod: Pod) -> None:
    """Wait until everything is stored, and look at each output."""
    await eventually(lambda: _is_complete(db, task), timeout_s=4 * PATIENCE_S, what="complete")
    rows = await lines_of(db, task)
    for stream in STREAMS:
        found = [int(row.log) for row in rows if row.stdtype == stream]
        assert found == list(range(pod.printed))
    assert len(rows) == 2 * pod.printed, "and nothing was given up"


async def _is_complete(db: Database, task: Task) -> bool:
    origin = LineOrigin(task=task.task, allocation=task.allocation, pod="pod-0", node=None)
    return (await completeness_of(pool_of(db), origin)).complete


async def test_hundreds_of_chunks_that_waited_for_the_intake_are_stored_in_order(
    database_url: str, bus_settings: BusSettings, db: Database, task: Task, tmp_path: Path
) -> None:
    port = free_port()
    pod = Pod(tmp_path, task, f"http://127.0.0.1:{port}")
    settings = at(logs_settings(database_url, bus_settings), port)
    with pod.shipped():
        async with Service(settings):
            pod.print(100)
            await eventually(lambda: _has_lines(db, task))
        await pod.pile_up(CHUNKS)
        async with Service(settings):
            pod.print(100)
            pod.end()
            await assert_all_is_in_order(db, task, pod)


async def test_a_shipper_that_is_killed_in_an_outage_brings_what_it_had_read(
    database_url: str, bus_settings: BusSettings, db: Database, task: Task, tmp_path: Path
) -> None:
    port = free_port()
    pod = Pod(tmp_path, task, f"http://127.0.0.1:{port}")
    with pod.shipped():
        await pod.pile_up(50)
    with pod.shipped():
        await pod.pile_up(100)
    pod.print(100)
    pod.end()
    with pod.shipped():
        async with Service(at(logs_settings(database_url, bus_settings), port)):
            await assert_all_is_in_order(db, task, pod)


async def test_a_service_that_is_killed_again_and_again_keeps_the_order(
    database_url: str, bus_settings: BusSettings, db: Database, task: Task, tmp_path: Path
) -> None:
    port = free_port()
    pod = Pod(tmp_path, task, f"http://127.0.0.1:{port}")
    service = service_process(database_url, bus_settings, log_path=tmp_path / "log", writer="killed", port=port)
    with pod.shipped():
        await pod.pile_up(CHUNKS)
        with service:
            for _ in range(3):
                stored = await _stored(db, task)
                await eventually(lambda stored=stored: _has_more(db, task, stored), what="some more")
                service.kill()
                await pod.pile_up(20)
                service.start()
            pod.end()
            await assert_all_is_in_order(db, task, pod)


async def test_the_bus_may_be_killed_while_chunks_come(
    database_url: str, own_nats_server: NatsServer, db: Database, task: Task, tmp_path: Path
) -> None:
    bus = BusSettings(url=own_nats_server.url, connect_timeout_s=PATIENCE_S)
    port = free_port()
    pod = Pod(tmp_path, task, f"http://127.0.0.1:{port}")
    with pod.shipped():
        async with Service(at(logs_settings(database_url, bus, request_timeout_s=1.0), port)):
            pod.print(100)
            await eventually(lambda: _has_lines(db, task))
            own_nats_server.kill()
            await pod.pile_up(CHUNKS)
            own_nats_server.start()
            pod.end()
            await assert_all_is_in_order(db, task, pod)


async def test_a_burst_is_stored_in_order(
    database_url: str, bus_settings: BusSettings, db: Database, task: Task, tmp_path: Path
) -> None:
    port = free_port()
    pod = Pod(tmp_path, task, f"http://127.0.0.1:{port}")
    width = 1000
    pod.print(BURST_BYTES // width // len(STREAMS), width=width)
    pod.end()
    async with Service(at(logs_settings(database_url, bus_settings), port)):
        with pod.shipped():
            await assert_all_is_in_order(db, task, pod)


async def _stored(db: Database, task: Task) -> int:
    return len(await lines_of(db, task))


async def _has_lines(db: Database, task: Task) -> bool:
    return await _stored(db, task) > 0


async def _has_more(db: Database, task: Task, stored: int) -> bool:
    return await _stored(db, task) > stored
