"""Waits for the end of processes, children of ours or of a launcher before us, without polling."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from services.launcher.backends.process.records import holder

POLL_S: Final = 2.0
"""How often to look where the kernel has no pidfd_open (before Linux 5.3), or a process has just begun."""


class ProcessWatch:
    """Calls ``when_over`` once, in the running event loop, when a process has ended, however it did.

    path   lock file the process holds while it lives
    child  the process, when it is ours: it may not hold its lock yet, and has to be collected
    """

    def __init__(self, path: Path, child: subprocess.Popen[bytes] | None, when_over: Callable[[], None]) -> None:
        self._path = path
        self._child = child
        self._when_over = when_over
        self._loop = asyncio.get_running_loop()
        self._pidfd: int | None = None
        self._next: asyncio.Handle = self._loop.call_soon(self._look)

    def close(self) -> None:
        """Stop watching."""
        self._next.cancel()
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _look(self) -> None:
        self.close()
        pid = self._pid()
        if pid is None:
            self._when_over()
            return
        self._pidfd = _open_pidfd(pid) if pid else None
        # The process may have ended, and its pid been taken, before the descriptor was opened; but not if it is there
        # still: a child stays ours until it is collected, and a lock has one holder.
        if self._pidfd is not None and self._pid() == pid:
            self._loop.add_reader(self._pidfd, self._look)
        else:
            self._next = self._loop.call_later(POLL_S, self._look)

    def _pid(self) -> int | None:
        """Pid of the process; None when it is over, 0 when it has not told yet."""
        if self._child is not None:
            return self._child.pid if self._child.poll() is None else None
        return holder(self._path)


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None  # over already, or an old kernel: both are found out by looking again


class NotificationPipe:
    """A named pipe into which others write what to look at; lines that come in are passed on."""

    def __init__(self, path: Path, on_line: Callable[[str], None]) -> None:
        # Opened for writing too, so that it does not end when the last supervisor closes it.
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._on_line = on_line
        self._rest = b""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._read)

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _read(self) -> None:
        try:
            data = self._rest + os.read(self._fd, 65536)
        except BlockingIOError:
            return
        *lines, self._rest = data.split(b"\n")
        for line in lines:
            self._on_line(os.fsdecode(line))
