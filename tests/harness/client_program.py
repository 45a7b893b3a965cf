"""Programs of ours that the client's own Python runs: a line of JSON in, a line of JSON out."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from tests.harness.installed_client import client_python
from tests.harness.processes import REPOSITORY


class ClientProgram:
    """``tests/harness/NAME.py``, running while it is entered."""

    def __init__(self, name: str, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        # -P: beside the program there is a folder ``determined`` that is not the client.
        self._argv = [
            str(client_python()),
            "-P",
            "-W",
            "ignore",
            str(REPOSITORY / f"tests/harness/{name}.py"),
            *arguments,
        ]
        self._env = {**os.environ, **(env or {})}

    def printed(self) -> Any:
        """What it prints when nothing is asked of it."""
        done = subprocess.run(self._argv, env=self._env, capture_output=True, text=True, timeout=60, check=True)
        return json.loads(done.stdout)

    def ask(self, question: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the program has ended"
        return json.loads(answer)

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._argv, env=self._env, stdin=pipe, stdout=pipe, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
