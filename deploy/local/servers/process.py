"""A child process with a log file: started, waited for, stopped or killed, never left behind.

Blocking, for use at start and end; in an event loop call it through ``asyncio.to_thread``.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from deploy.local.log_files import open_log

_PR_SET_PDEATHSIG: Final = 1


class ProcessFailed(Exception):
    """A process ended or did not get ready; the message ends with the last lines of its log."""


class ChildProcess:
    """One process; ``start`` may be called again after it has ended, and appends to the same log.

    dies_with_parent  signal that Linux sends it when the thread that started it ends; for tests, whose own process may
                      be killed. None leaves it running then.
    user              system user to run as; only root may choose another
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        log_path: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        user: str | None = None,
        dies_with_parent: signal.Signals | None = None,
    ) -> None:
        self.argv = list(argv)
        self.log_path = log_path
        self._env = dict(env) if env is not None else None
        self._cwd = cwd
        self._user = user
        self._dies_with_parent = dies_with_parent
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the running process. Raises ProcessFailed when it was never started."""
        if self._process is None:
            raise ProcessFailed(f"{self.argv[0]} was not started")
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs, or before it was started."""
        return None if self._process is None else self._process.poll()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        if self.is_running:
            return
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with open_log(self.log_path) as log_file:
            self._process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=subprocess.STDOUT,
                env=self._env,
                cwd=self._cwd,
                user=self._user,
                group=_group_of(self._user),
                extra_groups=[] if self._user is not None else None,
                # A session of its own: Ctrl-C in the terminal is for us, and we decide in which order things stop.
                start_new_session=True,
                # Only a system call happens there, in a library loaded before the fork.
                preexec_fn=_die_with_parent(self._dies_with_parent),  # noqa: PLW1509
            )

    def wait_until(self, is_ready: Callable[[], bool], *, timeout_s: float) -> None:
        """Return when ``is_ready`` says so. Raises ProcessFailed when the process ends first, or time is up."""
        deadline = time.monotonic() + timeout_s
        while not is_ready():
            if not self.is_running:
                raise ProcessFailed(f"{self.argv[0]} ended with {self.returncode}\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise ProcessFailed(f"{self.argv[0]} was not ready after {timeout_s} s\n{self.log_tail()}")
            time.sleep(0.02)

    def stop(self, *, with_signal: signal.Signals = signal.SIGTERM, grace_s: float = 10.0) -> int | None:
        """Ask it to end, kill it after ``grace_s``; returns its exit code, None if it was never started."""
        if self._process is None:
            return None
        if self._process.poll() is None:
            self._process.send_signal(with_signal)
            try:
                self._process.wait(grace_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
        return self._process.wait()

    def kill(self) -> None:
        """``kill -9``; returns when it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def log_tail(self, lines: int = 30) -> str:
        if not self.log_path.exists():
            return ""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])


def _group_of(user: str | None) -> int | None:
    if user is None:
        return None
    import pwd  # noqa: PLC0415  # POSIX only, like everything that runs as somebody else

    return pwd.getpwnam(user).pw_gid


def _die_with_parent(with_signal: signal.Signals | None) -> Callable[[], None] | None:
    if with_signal is None or sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)  # loaded here: between fork and exec the child may call hardly anything

    def ask() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, int(with_signal))

    return ask


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
