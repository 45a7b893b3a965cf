"""Finds tasks of a stopped system that still run, and ends them without a launcher."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from deploy.local.kubernetes import KubernetesOptions
from deploy.local.layout import Layout, Options
from services.launcher.backends.process.records import AllocationFiles, Assignment, StateFiles, StopRecord, holder
from services.launcher.backends.process.supervision.process_trees import kill_pod, send

GRACE_S: Final = 5.0


def running(layout: Layout) -> list[str]:
    """Names of the tasks that run. Raises CannotStart when they are pods of a cluster that does not answer."""
    kubernetes = _kubernetes(layout)
    if kubernetes is not None:
        from deploy.local.leftover_tasks import pods  # noqa: PLC0415  # its client takes long to import

        return pods.running(layout, kubernetes)
    return [assignment.order.allocation for _, assignment in _live(layout)]


def end(layout: Layout) -> list[str]:
    """Ask every task to end, kill what is left, and the processes that served them. Returns who was running.

    Raises CannotStart as ``running`` does.
    """
    kubernetes = _kubernetes(layout)
    if kubernetes is not None:
        from deploy.local.leftover_tasks import pods  # noqa: PLC0415

        ended = pods.running(layout, kubernetes)
        pods.end(layout, kubernetes)
        return ended
    live = _live(layout)
    for files, _ in live:
        with suppress(OSError):  # as on a full disk: the signal alone ends the task too
            files.write(StopRecord(deadline=time.time() + GRACE_S, ordered=True))
        if pid := holder(files.lock):
            send(pid, signal.SIGTERM)
    give_up_at = time.monotonic() + GRACE_S + 1
    while _live(layout) and time.monotonic() < give_up_at:
        time.sleep(0.05)
    for files, assignment in live:
        for rank in range(len(assignment.pods)):
            kill_pod(str(files.pod(rank).run))
    for pid in _serving(layout.launcher):
        send(pid, signal.SIGKILL)
    return [assignment.order.allocation for _, assignment in live]


def forget_namespaces(layout: Layout) -> None:
    """Delete the namespaces of a cluster that were made for workspaces. Raises CannotStart as ``running`` does."""
    kubernetes = _kubernetes(layout)
    if kubernetes is not None:
        from deploy.local.leftover_tasks import pods  # noqa: PLC0415

        pods.forget_namespaces(layout, kubernetes)


def _kubernetes(layout: Layout) -> KubernetesOptions | None:
    options = Options.load(layout)
    return options.kubernetes if options else None


def _live(layout: Layout) -> list[tuple[AllocationFiles, Assignment]]:
    # Launchers of further pools keep their state below that of the first.
    states = [StateFiles(str(root)) for root in (layout.launcher, *layout.launcher.glob("launcher-*"))]
    files = [files for state in states if state.allocations.is_dir() for files in state.found()]
    found = [(one, one.read(Assignment)) for one in files if holder(one.lock) is not None]
    return [(one, assignment) for one, assignment in found if assignment is not None]


def _serving(state_dir: Path) -> list[int]:
    """Supervisors and log shippers of this state folder: processes that were started with a path below it."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended
        if any(os.fsdecode(argument).startswith(f"{state_dir}/") for argument in arguments):
            found.append(int(entry.name))
    return found
