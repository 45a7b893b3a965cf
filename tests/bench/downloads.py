"""Download of a checkpoint of 1 GiB through the api, as the client asks for it, against a plain copy of its files.

Both end in a file beside it. The content is random, as weights are: nothing of it can be compressed away.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import obstore
import pytest

from libs.checkpoint_storage.files import BucketFiles
from libs.checkpoint_storage.opening import open_bucket
from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import connect_database
from libs.ids import new_uuid
from tests.bench.result import Result
from tests.bench.system import BenchSystem
from tests.builders import insert_checkpoint, insert_experiment
from tests.harness.bucket_servers import bucket_server

GIB: Final = 2**30
FILES: Final = 2
ROUNDS: Final = 2
PIECE: Final = 2**20
ALLOWED_MIB: Final = 64.0
GOAL: Final = 0.5


async def measure(system: BenchSystem) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="resolute-download-", dir=system.layout.checkpoints) as folder:
        shared = {"type": "shared_fs", "host_path": folder, "storage_path": None, "propagation": "rprivate"}
        uuid = await _report(system, shared)
        files = _random_files(Path(folder) / uuid)
        target = Path(folder) / "target"
        results = [*await asyncio.to_thread(_measure, system, "shared_fs", uuid, lambda: _copy(files, target), target)]
        try:
            with bucket_server("s3") as server:
                section = dict(server.section)
                uuid = await _report(system, section)
                await asyncio.to_thread(_upload, section, uuid, files)
                results += await asyncio.to_thread(
                    _measure, system, "s3", uuid, lambda: _fetch(section, uuid, target), target
                )
        except pytest.skip.Exception as skipped:
            print(f"download from s3 is not measured: it {skipped}")
    return results


async def _report(system: BenchSystem, section: dict[str, Any]) -> str:
    """The UUID of a checkpoint whose experiment has that storage."""
    uuid = new_uuid()
    url = system.database_url.replace("postgresql://", "postgresql+asyncpg://")
    async with connect_database(DatabaseSettings(url=url, pool_size=1)) as db, db.transaction() as tx:
        experiment = await insert_experiment(tx, state="COMPLETED", config={"checkpoint_storage": section})
        await insert_checkpoint(tx, uuid=uuid, experiment_id=experiment)
    return uuid


def _random_files(folder: Path) -> list[Path]:
    folder.mkdir()
    folder.chmod(0o755)
    noise = os.urandom(16 * PIECE)
    paths = [folder / f"weights-{number}" for number in range(FILES)]
    for path in paths:
        with path.open("wb") as file:
            for _ in range(GIB // FILES // len(noise)):
                file.write(noise)
    return paths


def _upload(section: dict[str, Any], uuid: str, files: list[Path]) -> None:
    bucket = open_bucket(section)
    for path in files:
        obstore.put(bucket, f"{uuid}/{path.name}", path, max_concurrency=2)


def _measure(system: BenchSystem, kind: str, uuid: str, copy: Callable[[], None], target: Path) -> list[Result]:
    pid, token = system.pids()["api"], system.log_in()
    _reset_peak(pid)
    before = _memory_kib(pid, "VmRSS")
    copied, downloaded = [], []
    for _ in range(ROUNDS):  # alternating, so that what else the machine does hits both
        for seconds, work in ((copied, copy), (downloaded, lambda: _download(system, token, uuid, target))):
            began = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - began)
            assert target.stat().st_size >= GIB
            target.unlink()
    baseline, value = (GIB / PIECE / min(seconds) for seconds in (copied, downloaded))
    grown = (_memory_kib(pid, "VmHWM") - before) / 1024
    return [
        Result(
            name=f"download of 1 GiB from {kind}",
            value=value,
            unit="MiB/s",
            baseline=baseline,
            goal=GOAL,
            better="higher",
        ),
        # As a share of what is allowed, since nothing was there before.
        Result(
            name=f"memory of the api during it, {kind}",
            value=grown,
            unit="MiB",
            baseline=ALLOWED_MIB,
            goal=1.0,
            better="lower",
        ),
    ]


def _copy(files: list[Path], target: Path) -> None:
    with target.open("wb") as copied:
        for path in files:
            with path.open("rb") as file:
                shutil.copyfileobj(file, copied, PIECE)


def _fetch(section: dict[str, Any], uuid: str, target: Path) -> None:
    files = BucketFiles(section, uuid)
    with target.open("wb") as fetched:
        for file in files.listed():
            for piece in files.read(file):
                fetched.write(piece)


def _download(system: BenchSystem, token: str, uuid: str, target: Path) -> None:
    """As the client does, which takes what comes from the socket; it unpacks afterwards."""
    parts = urlsplit(system.options.master_url)
    head = f"Host: bench\r\nAuthorization: Bearer {token}\r\nAccept: application/gzip\r\nConnection: close\r\n"
    with socket.create_connection((parts.hostname or "", parts.port or 80)) as connection, target.open("wb") as file:
        connection.sendall(f"GET /checkpoints/{uuid} HTTP/1.1\r\n{head}\r\n".encode())
        received = bytearray(PIECE)
        while size := connection.recv_into(received):
            file.write(memoryview(received)[:size])
    with target.open("rb") as file:
        assert file.read(13) == b"HTTP/1.1 200 ", "the download was refused"
        file.seek(-5, os.SEEK_END)
        assert file.read() == b"0\r\n\r\n", "the download was cut"


def _reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _memory_kib(pid: int, name: str) -> int:
    return int(Path(f"/proc/{pid}/status").read_text().partition(f"{name}:")[2].split()[0])
