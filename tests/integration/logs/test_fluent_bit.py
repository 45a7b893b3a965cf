"""A fluent-bit, or what behaves like one, between the capture wrapper and the logs service, as in a pod."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from libs.db.engine import Database
from services.launcher.container.settings import TaskSettings
from services.launcher.files import capture, capture_until_stored
from tests.harness.certificates import self_signed
from tests.harness.fluent_bit import Sidecar, end, major_version
from tests.harness.waiting import PATIENCE_S, wait_until
from tests.integration.launcher.fakes import serve_intake
from tests.integration.logs.conftest import Task, lines_of, texts_of

CAP_BYTES = 8 << 20


class Pod:
    def __init__(self, root: Path, task: Task, url: str, *, master_cert: Path | None = None) -> None:
        self.logs = root / "logs"
        self.logs.mkdir(parents=True)
        self._url = url
        self._environment = {
            "PATH": os.environ["PATH"],
            "DET_SESSION_TOKEN": task.token,
            "DET_CONTAINER_ID": "pod-0",
        }
        if master_cert is not None:
            self._environment["DET_MASTER_CERT_FILE"] = str(master_cert)
        self.sidecar = Sidecar(
            self.logs,
            token=task.token,
            allocation=task.allocation,
            pod="pod-0",
            tasks=TaskSettings(log_intake_url=url),
            master_cert=master_cert,
        )

    def start(self, *command: str, **environ: str) -> subprocess.Popen[bytes]:
        """The container of the task."""
        script = str(capture_until_stored.__file__)
        flags = (
            "--intake",
            self._url,
            "--outage-wait-s",
            "0",
            "--dir",
            str(self.logs),
            "--cap-bytes",
            str(CAP_BYTES),
            "--when-full",
            "stored",
        )
        return subprocess.Popen(
            [sys.executable, "-I", "-S", script, *flags, "--", *command], env={**self._environment, **environ}
        )


async def ended(process: subprocess.Popen[bytes]) -> int:
    return await asyncio.to_thread(process.wait, PATIENCE_S)


@pytest.fixture
def pod(tmp_path: Path, task: Task, intake: httpx.AsyncClient) -> Pod:
    return Pod(tmp_path, task, str(intake.base_url).rstrip("/"))


async def test_the_end_of_a_task_loses_nothing(pod: Pod, task: Task, db: Database) -> None:
    with pod.sidecar.running() as sidecar:
        assert await ended(pod.start("seq", "100000")) == 0
        assert await asyncio.to_thread(end, sidecar) == 0
    texts = await texts_of(db, task)
    assert len(texts) == 100_000
    assert texts == [b"%d\n" % number for number in range(1, 100_001)]


async def test_a_task_that_is_over_at_once_loses_nothing(pod: Pod, task: Task, db: Database) -> None:
    with pod.sidecar.running() as sidecar:
        assert await ended(pod.start("sh", "-c", "echo out; echo err >&2; exit 3")) == 3
        assert await asyncio.to_thread(end, sidecar) == 0
    assert sorted((row.stdtype, row.log) for row in await lines_of(db, task)) == [
        ("stderr", b"err\n"),
        ("stdout", b"out\n"),
    ]


async def test_files_that_come_and_go_while_it_reads_invent_no_line_and_lose_none(
    pod: Pod, task: Task, db: Database
) -> None:
    lines = 100_000  # more than twice what may lie on the disk, in twenty files
    with pod.sidecar.running() as sidecar:
        process = pod.start("seq", "-f", "%0150.0f", str(lines), DET_LOG_WAIT_TIME="300")
        assert await asyncio.to_thread(process.wait, 2 * PATIENCE_S) == 0
        assert await asyncio.to_thread(end, sidecar) == 0
    assert not (pod.logs / "stdout.0.log").exists()
    assert await texts_of(db, task) == [b"%0150d\n" % number for number in range(1, lines + 1)]


@pytest.mark.skipif(major_version() < 5, reason="before version 5 it compares certificates with names only")
async def test_an_intake_with_a_certificate_for_its_address_is_trusted(tmp_path: Path, task: Task) -> None:
    pair = self_signed(tmp_path)
    with serve_intake(pair) as fake:
        pod = Pod(tmp_path, task, fake.url, master_cert=pair.cert)
        with pod.sidecar.running():
            assert await ended(pod.start("echo", "hello")) == 0
        assert fake.printed() == [b"hello"]


@pytest.mark.slow
async def test_in_an_outage_a_line_takes_its_bytes_of_the_disk_and_no_more(tmp_path: Path, task: Task) -> None:
    seconds = 40
    with serve_intake() as fake:
        fake.refuse = lambda _records: 503
        away = Pod(tmp_path / "away", task, fake.url)
        with away.sidecar.running():
            last = tmp_path / "last"
            words = f"for i in $(seq {seconds * 2}); do echo line $i; sleep 0.5; done; touch {last}"
            process = away.start("sh", "-c", words, DET_LOG_WAIT_TIME="300")
            await asyncio.to_thread(wait_until, last.exists, timeout_s=2 * seconds)
            kept = list((away.logs / ".flb").glob("*/*"))
            assert len(kept) <= 2 * capture.HOLD_AT
            fake.refuse = lambda _records: 200
            assert await asyncio.to_thread(process.wait, PATIENCE_S) == 0
        assert fake.printed() == [b"line %d" % number for number in range(1, 2 * seconds + 1)]


async def test_an_outage_is_told_a_few_times_and_no_more(tmp_path: Path, task: Task) -> None:
    with serve_intake() as fake:
        fake.refuse = lambda _records: 503
        away = Pod(tmp_path / "away", task, fake.url)
        with away.sidecar.running():
            process = away.start("sh", "-c", "while :; do echo .; sleep 0.1; done", DET_LOG_WAIT_TIME="0")
            await asyncio.to_thread(wait_until, lambda: fake.refused > 20)
            process.terminate()
            await ended(process)
        said = away.sidecar.output.read_text().splitlines()
        assert sum("[error]" in line or "[ warn]" in line for line in said) < 5
