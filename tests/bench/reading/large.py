"""Everything that reads, through ``det``, the SDK and REST: on a database of 100,000 experiments against one of 100.

The large one has a trial of 100,000 names and one with a million points of a metric, of which the small one has ten
and a thousand. What answers at the same length is to take at most 1.5 times as long; of the rest both lengths are told.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from tests.bench.reading.large_calls import COMMANDS, METHODS, filled, requests_of
from tests.bench.reading.large_rows import LARGE, SMALL, LargeRows, Size, insert_large
from tests.bench.result import Result
from tests.bench.system import CLIENT_PYTHON, BenchSystem, running_system
from tests.harness.client import Client
from tests.harness.raw_http import RawConnection

ROUNDS: Final = 5
FACTOR: Final = 1.5
SAME_LENGTH: Final = 1.2
"""Up to this ratio two answers count as of the same length: ids have more digits, and durations other ones."""
_SDK: Final = Path(__file__).parents[2] / "harness" / "sdk_calls.py"

Ask = Callable[[], Awaitable[int]]
"""Returns the length of the answer, in bytes."""


@dataclass(frozen=True)
class _Side:
    """A system with its rows, and the clients of it."""

    rows: LargeRows
    det: Client
    sdk: subprocess.Popen[str]
    http: _Pages

    def asks(self) -> Iterator[tuple[str, Ask]]:
        for command in COMMANDS:
            yield f"det {command}", self._command(filled(command, self.rows).split())
        for name, expression in METHODS.items():
            yield f"SDK {name}", self._method(filled(expression, self.rows))
        for name, (path, body) in requests_of(self.rows).items():
            yield name, self._request(path, body)

    def _command(self, words: list[str]) -> Ask:
        async def ask() -> int:
            return len(self.det(*words, timeout_s=600))

        return ask

    def _method(self, expression: str) -> Ask:
        async def ask() -> int:
            assert self.sdk.stdin is not None
            assert self.sdk.stdout is not None
            self.sdk.stdin.write(json.dumps(expression) + "\n")
            self.sdk.stdin.flush()
            said = json.loads(self.sdk.stdout.readline())
            assert "answer" in said, f"{expression}: {said}"
            return len(said["answer"])

        return ask

    def _request(self, path: str, body: Any) -> Ask:
        async def ask() -> int:
            return await self.http.ask(path, None if body is None else msgspec.json.encode(body))

        return ask


class _Pages:
    """Requests as pages send them; the connection is made anew when nobody has used it for long."""

    def __init__(self, system: BenchSystem) -> None:
        self._url = system.options.master_url
        self._headers = {"Authorization": f"Bearer {system.log_in()}"}
        self._connection: RawConnection | None = None

    async def ask(self, path: str, body: bytes | None) -> int:
        """The length of the answer."""
        if self._connection is None or not self._connection.is_open:
            self._connection = await RawConnection.open(self._url, self._headers)
        connection = self._connection
        message = connection.get_request(path) if body is None else connection.request(path, body)
        return len(await connection.send(message))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def measure(_: BenchSystem) -> list[Result]:
    """On two systems of its own: nobody else wants so many experiments."""
    with ExitStack() as stack:
        systems = [(stack.enter_context(running_system()), size) for size in (SMALL, LARGE)]
        return asyncio.run(_compare(stack, systems))


async def _compare(stack: ExitStack, systems: list[tuple[BenchSystem, Size]]) -> list[Result]:
    small, large = [await _open(stack, system, size) for system, size in systems]
    try:
        return [result async for result in _results(small, large)]
    finally:
        for side in (small, large):
            side.http.close()


async def _results(small: _Side, large: _Side) -> AsyncIterator[Result]:
    for (name, on_small), (_, on_large) in zip(small.asks(), large.asks(), strict=True):
        lengths: list[int] = [0, 0]
        times: list[list[float]] = [[], []]
        # In turns, so that what else the machine does hits both; once is enough for what is not compared.
        while len(times[0]) < (ROUNDS if _are_same(lengths) else 1):
            for side, ask in enumerate((on_small, on_large)):
                began = time.perf_counter()
                lengths[side] = await ask()
                times[side].append((time.perf_counter() - began) * 1e3)
        yield _result(name, lengths, [min(each) for each in times])


def _are_same(lengths: list[int]) -> bool:
    return max(lengths) <= SAME_LENGTH * max(min(lengths), 100)


def _result(name: str, lengths: list[int], times: list[float]) -> Result:
    """The quickest of all rounds each, which is the one with the least of what else the machine does."""
    same = _are_same(lengths)
    return Result(
        name=name if same else f"{name} ({lengths[0]:,} and {lengths[1]:,} bytes)",
        value=times[1],
        unit="ms",
        baseline=times[0],
        goal=FACTOR if same else None,
        better="lower",
    )


async def _open(stack: ExitStack, system: BenchSystem, size: Size) -> _Side:
    rows = await insert_large(system.database_url, size)
    home = system.layout.root.parent / "home"
    det = Client(system.options.master_url, home, forked=True)
    return _Side(rows, det, stack.enter_context(_sdk(system, home)), _Pages(system))


@contextmanager
def _sdk(system: BenchSystem, home: Path) -> Iterator[subprocess.Popen[str]]:
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "DET_MASTER": system.options.master_url,
        "LANG": "C.UTF-8",
        "PYTHONWARNINGS": "ignore",
    }
    argv = [str(CLIENT_PYTHON), "-P", str(_SDK)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, cwd=home) as process:
        assert process.stdin is not None
        yield process
        process.stdin.close()
