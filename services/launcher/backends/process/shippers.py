"""Keeps one shipper per pod running until everything the pod printed is delivered.

A shipper (``files/ship.py``) is a process of its own, so that delivery goes on without the launcher. Only the launcher
starts it again when it was killed, because only the launcher is sure to come back.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from msgspec import Struct

from services.launcher.backends.process.no_space import is_no_space
from services.launcher.backends.process.records import PodFiles, holder
from services.launcher.backends.process.supervision.process_trees import send
from services.launcher.backends.process.supervision.process_watch import ProcessWatch
from services.launcher.backends.process.supervision.spawning import spawn_shipper
from services.launcher.container.settings import TaskSettings
from services.launcher.files.capture import STREAMS, is_sealed, lines_printed, seal

log = structlog.get_logger()

RESTART_PAUSE_S: Final = 5.0


class ShippedPod(Struct, frozen=True, kw_only=True):
    allocation: str
    name: str
    node: str
    files: PodFiles


class Shippers:
    def __init__(self, tasks: TaskSettings, *, on_end: Callable[[str], None]) -> None:
        """``on_end`` is told the allocation of which a shipper has ended; one that was killed has to be kept again."""
        self._tasks = tasks
        self._on_end = on_end
        self._watches: dict[str, ProcessWatch] = {}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._waiting: set[asyncio.Future[None]] = set()

    def keep(self, pod: ShippedPod) -> None:
        """See to it that a shipper runs, unless there is nothing more to deliver, or nowhere to deliver it to."""
        if pod.name in self._watches or is_shipped(pod.files) or self._tasks.log_intake_url is None:
            return
        lock = pod.files.ship / "ship.lock"
        child = None
        if holder(lock) is None:
            child = self._children[pod.name] = self._spawn(pod, self._tasks.log_intake_url)

        def ended() -> None:
            self._children.pop(pod.name, None)
            if is_shipped(pod.files):
                self._over(pod)
            else:
                log.warning("shipper.ended_early", allocation=pod.allocation, pod=pod.name)
                asyncio.get_running_loop().call_later(RESTART_PAUSE_S, self._over, pod)

        self._watches[pod.name] = ProcessWatch(lock, child, ended)

    async def finish(self, pods: Sequence[ShippedPod], timeout_s: float) -> bool:
        """Wait until everything of ``pods``, which have ended, is delivered; False when it was not in time."""
        if self._tasks.log_intake_url is None:
            return True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        while left := [pod for pod in pods if not is_shipped(pod.files)]:
            if loop.time() >= deadline:
                return False
            for pod in left:
                self.keep(pod)
            ended = loop.create_future()
            self._waiting.add(ended)
            await asyncio.wait([ended], timeout=deadline - loop.time())
            self._waiting.discard(ended)
        return True

    def forget(self, pod: ShippedPod) -> None:
        """End the shipper, if it still runs, and whatever is known of it."""
        watch = self._watches.pop(pod.name, None)
        if watch is not None:
            watch.close()
        child = self._children.pop(pod.name, None)
        if child is not None:
            child.kill()
            child.wait()
        elif pid := holder(pod.files.ship / "ship.lock"):
            send(pid, signal.SIGKILL)

    def close(self) -> None:
        """Stop watching; the shippers go on."""
        for watch in self._watches.values():
            watch.close()
        self._watches.clear()

    def _over(self, pod: ShippedPod) -> None:
        self._watches.pop(pod.name, None)
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._on_end(pod.allocation)

    def _spawn(self, pod: ShippedPod, url: str) -> subprocess.Popen[bytes]:
        flags = {
            "--url": url,
            "--dir": str(pod.files.logs),
            "--state": str(pod.files.ship),
            "--token-file": str(pod.files.ship / "token"),
            "--allocation": pod.allocation,
            "--pod": pod.name,
            "--node": pod.node,
            "--restart": "0",
            "--ca-file": self._ca_file(pod),
        }
        return spawn_shipper(pod.files, [text for flag in flags.items() for text in flag] + ["--delete-shipped"])

    def _ca_file(self, pod: ShippedPod) -> str:
        """Pods that were started by a release without the file trust what the launcher is configured with."""
        return str(pod.files.trusted) if pod.files.trusted.exists() else self._tasks.master_cert_file or ""


def is_shipped(files: PodFiles) -> bool:
    """Whether nothing of a pod is left to deliver."""
    return (files.ship / "shipped").exists()


def printed_by(files: PodFiles) -> dict[str, int | None]:
    """Number of lines of each output of a pod that has ended; None where the files do not say."""
    printed: dict[str, int | None] = dict.fromkeys(STREAMS)
    try:
        printed |= lines_printed(str(files.logs))
    except OSError as error:
        log.warning("shipper.output_unusable", directory=str(files.logs), problem=str(error))
    return printed


def finish_output(files: PodFiles, exit_code: int | None) -> None:
    """After the last process of a pod: end its output where the wrapper was killed before it could.

    A pod that never started printed nothing, and nobody waits for an end of that. Raises OSError when there is no space
    for the end; it can be done again.
    """
    if not files.logs.is_dir() or is_shipped(files):
        return
    printed = any(name.endswith(".log") for name in os.listdir(files.logs))
    if not (printed and _end_streams(files, exit_code)):
        files.ship.mkdir(exist_ok=True)
        (files.ship / "shipped").touch()


def _end_streams(files: PodFiles, exit_code: int | None) -> bool:
    """Whether both streams have an end now; a task that put something else in the place of its files gets none."""
    try:
        if not is_sealed(str(files.logs)):
            seal(str(files.logs), exit_code)
    except OSError as error:
        if is_no_space(error):
            raise
        log.warning("shipper.output_unusable", directory=str(files.logs), problem=str(error))
        return False
    return True
