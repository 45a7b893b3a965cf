"""One of two systems that answer the same calls, with the clients that ask it."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from tests.bench.reading.large_calls import METHODS, requests_of
from tests.bench.reading.large_commands import CHANGES, COMMANDS
from tests.bench.reading.large_rows import LargeRows
from tests.bench.system import CLIENT_PYTHON, BenchSystem
from tests.harness.client import Client
from tests.harness.raw_http import RawConnection

Ask = Callable[[], Awaitable[int]]
"""Returns the length of the answer, in bytes."""
_SDK: Final = Path(__file__).parents[2] / "harness" / "sdk_calls.py"
_SEARCH: Final = """
name: looked at
entrypoint: python3 train.py
searcher: {name: random, metric: loss, max_trials: 4, max_length: {batches: 100}}
hyperparameters: {lr: {type: log, base: 10, minval: -4, maxval: -1}}
"""


@dataclass(frozen=True)
class Side:
    """``places``: what stands for the words in braces of calls."""

    system: BenchSystem
    places: Mapping[str, object]
    _det: Client
    _sdk: subprocess.Popen[str]
    _http: _Pages

    @classmethod
    @contextmanager
    def of(cls, system: BenchSystem, rows: LargeRows) -> Iterator[Self]:
        """The clients of a system that has these rows, until the end."""
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            search = Path(folder) / "search.yaml"
            search.write_text(_SEARCH)
            places = {**asdict(rows), "out": Path(folder) / "out", "search": search}
            (Path(folder) / "out").mkdir()
            det = Client(system.options.master_url, home, forked=True)
            pages = _Pages(system)
            try:
                with _sdk(system, home) as sdk:
                    yield cls(system, places, det, sdk, pages)
            finally:
                pages.close()

    def asks(self) -> Iterator[tuple[str, Ask]]:
        """Each call by its name."""
        for command in COMMANDS:
            yield f"det {command}", self._commands(command.format(**self.places))
        for name, expression in METHODS.items():
            yield f"SDK {name}", self._method(expression.format(**self.places))
        for name, (path, body) in requests_of(self.places).items():
            yield name, self._request(path, body)
        for command in CHANGES:
            yield f"det {command}", self._commands(command.format(**self.places))

    def _commands(self, typed: str) -> Ask:
        async def ask() -> int:
            return sum(len(self._det(*command.split(), timeout_s=600)) for command in typed.split("; "))

        return ask

    def _method(self, expression: str) -> Ask:
        async def ask() -> int:
            assert self._sdk.stdin is not None
            assert self._sdk.stdout is not None
            self._sdk.stdin.write(json.dumps(expression) + "\n")
            self._sdk.stdin.flush()
            said = json.loads(self._sdk.stdout.readline())
            assert "answer" in said, f"{expression}: {said}"
            return len(said["answer"])

        return ask

    def _request(self, path: str, body: Any) -> Ask:
        async def ask() -> int:
            return await self._http.ask(path, None if body is None else msgspec.json.encode(body))

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
