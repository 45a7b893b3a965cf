"""A service of ours as a process, as in production: started, waited for, killed at will, never left behind."""

from __future__ import annotations

import os
import signal
import sys
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from deploy.local.servers.process import ChildProcess
from tests.harness.forked import SERVICES, ForkedService

REPOSITORY = Path(__file__).resolve().parents[2]


class ServiceProcess:
    """``python -m <module>``; a context manager that leaves no process behind, not even when the tests are killed.

    env       added to the environment of the tests
    is_ready  asked until it says yes; None means ready at once
    forked    a service of ours is forked (see ``forked``); False starts an interpreter, for those who measure it
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        log_path: Path,
        env: Mapping[str, str] | None = None,
        is_ready: Callable[[], bool] | None = None,
        ready_timeout_s: float = 60.0,
        forked: bool = True,
    ) -> None:
        self._is_ready = is_ready
        self._ready_timeout_s = ready_timeout_s
        everything = {**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})}
        self._process: ChildProcess
        if forked and module in SERVICES:
            self._process = ForkedService(module, arguments, log_path=log_path, env=everything, cwd=REPOSITORY)
        else:
            self._process = ChildProcess(
                (sys.executable, "-m", module, *arguments),
                log_path=log_path,
                cwd=REPOSITORY,
                env=everything,
                dies_with_parent=signal.SIGKILL,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def start(self) -> None:
        """Start and wait until ready; the log of earlier starts is kept. Raises ProcessFailed with the end of it."""
        self._process.start()
        if self._is_ready is not None:
            try:
                self._process.wait_until(self._is_ready, timeout_s=self._ready_timeout_s)
            except BaseException:
                self._process.kill()
                raise

    def stop(self, grace_s: float = 10.0) -> int | None:
        """SIGTERM, SIGKILL after ``grace_s``; returns the exit code."""
        return self._process.stop(grace_s=grace_s)

    def kill(self) -> None:
        """``kill -9``."""
        self._process.kill()

    def restart(self) -> None:
        """``kill -9``, and start again."""
        self.kill()
        self.start()

    def log(self) -> str:
        return self._process.log_tail(10_000)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def answers_http(url: str) -> Callable[[], bool]:
    """For ``is_ready``: whether a GET of ``url`` is answered with a status below 400."""

    def ask() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return True
        except OSError:
            return False

    return ask
