"""Behaves as fluent-bit was measured to, where there is no fluent-bit: ``python fluent_bit_stand_in.py -c FILE``.

Takes the launcher's own configuration and understands of it what that uses: a ``tail`` input with file storage, and an
``http`` output. What was measured with 4.0 to 5.1 (docs/reference/logs.md 13.11), and is unpleasant on purpose:

* files are found by looking every ``refresh_interval``; a position is saved before anything is delivered;
* at SIGTERM nothing more is read, at once; what was read is delivered for ``grace`` seconds at most;
* each flush makes a chunk, on disk; up to 64 are sent at once;
* a chunk that failed comes again after a random time, so that after an outage chunks come in any order;
* 408, 429 and anything but 4xx is tried again for ever, any other 4xx throws the chunk away;
* after ``kill -9`` the chunks on disk are sent, in any order, beside what is read next.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import re
import signal
import ssl
import struct
import time
from pathlib import Path
from typing import Any

import httpx
import msgpack  # type: ignore[import-untyped]
import yaml

AT_ONCE = 64
CHUNK_BYTES = 2 << 20
READ_BYTES = 64 << 10
POLL_S = 0.05
REQUEST_TIMEOUT_S = 20.0


class Chunks:
    """What was read and is not delivered: a file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._made = 0

    def add(self, records: bytes) -> Path:
        self._made += 1
        path = self._folder / f"{time.time_ns()}-{self._made}.chunk"
        unfinished = path.with_suffix(".new")
        unfinished.write_bytes(records)
        unfinished.rename(path)
        return path

    def left(self) -> list[Path]:
        """Those of an earlier run, in any order."""
        paths = sorted(self._folder.glob("*.chunk"))
        random.shuffle(paths)
        return paths


class Tail:
    """Reads what is appended to files, whole lines only."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._pattern = Path(settings["path"])
        self._refresh_s = float(settings["refresh_interval"])
        self._db = Path(settings["db"])
        self._offsets: dict[str, int] = json.loads(self._db.read_text()) if self._db.exists() else {}
        self._files: list[str] = []
        self._look_at = 0.0

    def read(self) -> bytes:
        """Records of one more piece of each file, packed; empty when there is nothing new."""
        if time.monotonic() >= self._look_at:
            self._files = sorted(str(path) for path in self._pattern.parent.glob(self._pattern.name))
            self._look_at = time.monotonic() + self._refresh_s
        return b"".join(self._read(path) for path in self._files)

    def save(self) -> None:
        unfinished = self._db.with_suffix(".new")
        unfinished.write_text(json.dumps(self._offsets))
        unfinished.rename(self._db)

    def _read(self, path: str) -> bytes:
        offset = self._offsets.get(path, 0)
        try:
            with open(path, "rb") as file:
                file.seek(offset)
                data = file.read(READ_BYTES)
        except FileNotFoundError:
            return b""
        packed = []
        for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
            packed.append(pack(path, offset, line[:-1]))
            offset += len(line)
        self._offsets[path] = offset
        return b"".join(packed)


def pack(path: str, offset: int, line: bytes) -> bytes:
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    moment = msgpack.ExtType(0, struct.pack(">II", seconds, nanoseconds))
    packed: bytes = msgpack.packb([[moment, {}], {"path": path, "offset": offset, "log": line}])
    return packed


class Http:
    """Delivers chunks, each until it is taken or refused for good."""

    def __init__(self, settings: dict[str, Any], *, retry_base_s: float, retry_cap_s: float) -> None:
        scheme = "https" if settings.get("tls") else "http"
        host = f"[{settings['host']}]" if ":" in settings["host"] else settings["host"]
        self._url = f"{scheme}://{host}:{settings['port']}{settings['uri']}"
        self._headers = dict(header.split(" ", 1) for header in settings["header"])
        self._headers |= {"Content-Type": "application/msgpack", "Content-Encoding": "gzip"}
        self._retry_base_s = retry_base_s
        self._retry_cap_s = retry_cap_s
        self._free = asyncio.Semaphore(AT_ONCE)
        self._client = httpx.AsyncClient(verify=tls_context(settings), timeout=REQUEST_TIMEOUT_S, trust_env=False)

    async def deliver(self, chunk: Path) -> None:
        tries = 0
        while not await self._is_done(chunk):
            tries += 1
            longest_s = min(self._retry_base_s * 2**tries, self._retry_cap_s)
            await asyncio.sleep(random.uniform(self._retry_base_s, longest_s))
        chunk.unlink()

    async def _is_done(self, chunk: Path) -> bool:
        async with self._free:
            try:
                body = gzip.compress(chunk.read_bytes(), 1)
                status = (await self._client.post(self._url, content=body, headers=self._headers)).status_code
            except httpx.TransportError:
                return False
        if 400 <= status < 500 and status not in (408, 429):
            print(f"chunk {chunk.name} is thrown away, refused with {status}", flush=True)
            return True
        return 200 <= status <= 205


def tls_context(settings: dict[str, Any]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.get("tls.ca_file"))
    if not settings.get("tls.verify", True):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


async def main(config: dict[str, Any]) -> None:
    service = config["service"]
    tail = Tail(config["pipeline"]["inputs"][0])
    http = Http(
        config["pipeline"]["outputs"][0],
        retry_base_s=float(service["scheduler.base"]),
        retry_cap_s=float(service["scheduler.cap"]),
    )
    chunks = Chunks(Path(service["storage.path"]) / "chunks")
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    under_way: set[asyncio.Task[None]] = set()

    def send(chunk: Path) -> None:
        task = asyncio.create_task(http.deliver(chunk))
        under_way.add(task)
        task.add_done_callback(under_way.discard)

    for chunk in chunks.left():
        send(chunk)
    pending: list[bytes] = []
    flush_at = 0.0
    while not stop.is_set():
        records = tail.read()
        pending += [records] if records else []
        if pending and (time.monotonic() >= flush_at or sum(map(len, pending)) >= CHUNK_BYTES):
            send(chunks.add(b"".join(pending)))
            tail.save()
            pending.clear()
            flush_at = time.monotonic() + float(service["flush"])
        await asyncio.sleep(0 if records else POLL_S)
    if pending:
        send(chunks.add(b"".join(pending)))
        tail.save()
    if under_way:
        await asyncio.wait(under_way, timeout=float(service["grace"]))
    os._exit(0)  # what is not delivered stays on disk


def with_environment(text: str) -> str:
    return re.sub(r"\$\{(\w+)\}", lambda name: os.environ.get(name[1], ""), text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("-c", required=True)
    asyncio.run(main(yaml.safe_load(with_environment(Path(parser.parse_args().c).read_text()))))
