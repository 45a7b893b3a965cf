"""Finds and kills every process of a pod, whoever its parent is by now.

Processes of a pod are those that see its directory at ``/run/determined``. That survives double forks, new sessions and
the death of the supervisor, and cannot hit a stranger: unlike a pid, the directory is not used again.

Only the standard library: this runs in the supervisor as well. Sources: proc_pid_root(5), signal(7).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection

KILL_LIMIT_S = 10.0
"""A process that does not die in this time hangs in the kernel, and nobody can help it."""
_PAUSE_S = 0.005


def pids_of_pod(run_dir: str) -> list[int]:
    """Processes whose ``/run/determined`` is ``run_dir``; none when the directory does not exist."""
    try:
        wanted = os.stat(run_dir)
    except FileNotFoundError:
        return []
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            seen = os.stat(f"/proc/{name}/root/run/determined")
        except OSError:
            continue  # it is over, not ours to look at, or has no such directory
        if (seen.st_dev, seen.st_ino) == (wanted.st_dev, wanted.st_ino):
            found.append(int(name))
    return found


def kill_pod(run_dir: str, spare: Collection[int] = ()) -> bool:
    """SIGKILL every process of a pod except ``spare``; True when none is left, False when one did not die in time."""
    deadline = time.monotonic() + KILL_LIMIT_S
    while True:
        # A process may fork between being seen and being killed, so only a look that finds nobody is the last.
        left = [pid for pid in pids_of_pod(run_dir) if pid not in spare]
        if not left:
            return True
        if time.monotonic() > deadline:
            return False
        for pid in left:
            send(pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
