"""Services forked from a process that has imported them: a start is mostly imports, and tests start hundreds.

Whole systems (``resolute up``) start theirs with an interpreter each, as production does.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Final

from deploy.local.servers.process import ChildProcess, ProcessFailed

SERVICES: Final = frozenset(f"services.{name}.main" for name in ("api", "launcher", "logs", "scheduler"))

_forkserver = multiprocessing.get_context("forkserver")
_forkserver.set_forkserver_preload(sorted(SERVICES))


class ForkedService(ChildProcess):
    """``python -m <module>`` for one of SERVICES; dies with the tests."""

    def __init__(
        self, module: str, arguments: Sequence[str], *, log_path: Path, env: Mapping[str, str], cwd: Path
    ) -> None:
        super().__init__([module, *arguments], log_path=log_path, env=env, cwd=cwd)
        self._run = (module, list(arguments), log_path, dict(env), cwd)
        self._forked: ForkServerProcess | None = None

    @property
    def pid(self) -> int:
        if self._forked is None or self._forked.pid is None:
            raise ProcessFailed(f"{self.argv[0]} was not started")
        return self._forked.pid

    @property
    def returncode(self) -> int | None:
        return None if self._forked is None else self._forked.exitcode

    @property
    def is_running(self) -> bool:
        return self._forked is not None and self._forked.is_alive()

    def start(self) -> None:
        if self.is_running:
            return
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        self._forked = _forkserver.Process(target=_run, args=self._run, daemon=True)
        self._forked.start()

    def stop(self, *, with_signal: signal.Signals = signal.SIGTERM, grace_s: float = 10.0) -> int | None:
        if self._forked is None:
            return None
        if self.is_running:
            os.kill(self.pid, with_signal)
            self._forked.join(grace_s)
        self.kill()
        return self.returncode

    def kill(self) -> None:
        if self._forked is not None:
            self._forked.kill()
            self._forked.join()


def _run(module: str, arguments: Sequence[str], log_path: Path, env: Mapping[str, str], cwd: Path) -> None:
    """What an interpreter does with ``-m``, in a process that was forked for it."""
    os.setsid()
    threading.Thread(target=_die_with_tests, daemon=True).start()
    with log_path.open("ab", buffering=0) as log, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = [module, *arguments]
    del sys.modules[module]  # imported for what it imports; it runs under the name of a program
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _die_with_tests() -> None:
    tests = multiprocessing.parent_process()
    assert tests is not None
    tests.join()
    os.kill(os.getpid(), signal.SIGKILL)
