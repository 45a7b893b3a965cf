"""Process backend: makes true on this machine what the state directory says.

Nothing is kept in memory that could not be read again: a launcher that was killed finds its allocations in the state
directory, each with a supervisor that is still at work, or with the word of how it ended.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog

from libs.clock import Clock
from libs.errors import InvalidRequest
from libs.events.capacity import PoolCapacity
from libs.events.observations import AllocationObserved
from libs.events.orders import Order, PlaceholderOrder
from libs.events.subjects import token
from libs.loglines.batches import container_key, end_of_writer
from services.launcher.backends.process.no_space import TRY_AGAIN_S, is_no_space
from services.launcher.backends.process.observations import (
    awaits_delivery,
    is_over,
    observed,
    status_without_supervisor,
)
from services.launcher.backends.process.preparation.interpreter import closed_interpreters
from services.launcher.backends.process.preparation.plan import Machine, make_plan
from services.launcher.backends.process.preparation.pod_view import pod_name
from services.launcher.backends.process.records import (
    AllocationFiles,
    Assignment,
    StateFiles,
    StatusRecord,
    StopRecord,
    holder,
    try_lock,
)
from services.launcher.backends.process.shippers import (
    ShippedPod,
    Shippers,
    finish_output,
    is_shipped,
    printed_by,
)
from services.launcher.backends.process.slots import device_ids, node_capacity, pool_capacity, take_devices
from services.launcher.backends.process.supervision.process_trees import kill_pod, send
from services.launcher.backends.process.supervision.process_watch import NotificationPipe, ProcessWatch
from services.launcher.backends.process.supervision.spawning import PYTHON, spawn_supervisor
from services.launcher.cluster_admin import NoClusterAdmin
from services.launcher.reconcile import Existence
from services.launcher.task_lines import Lines

log = structlog.get_logger()

LAST_LINES_S: Final = 2.0
"""How long the end of a pod waits until its last lines are delivered, so that they stand before what is said of it."""


class _Run:
    """One allocation on this machine."""

    def __init__(self, files: AllocationFiles, assignment: Assignment) -> None:
        self.files = files
        self.assignment = assignment
        self.watch: ProcessWatch | None = None
        self.settling: asyncio.Task[None] | None = None
        self.settled = asyncio.Event()
        """There is no supervisor, and will be none."""
        self.look_again: asyncio.TimerHandle | None = None
        """When its end waits no longer for the last lines."""
        self.retry: asyncio.TimerHandle | None = None
        """When its output is looked after again, for which there was no space."""

    @property
    def allocation(self) -> str:
        return self.assignment.order.allocation

    def status(self) -> StatusRecord | None:
        return self.files.read(StatusRecord)

    def existence(self) -> Existence:
        return Existence.ENDED if is_over(self.assignment, self.status()) else Existence.LIVE


class ProcessBackend:
    """See ``backends/protocol.py`` for what the methods promise."""

    def __init__(
        self, *, pool: str, machine: Machine, state: StateFiles, slots: int, clock: Clock, lines: Lines
    ) -> None:
        self._pool = pool
        self._machine = machine
        self._state = state
        self._slots = slots
        self._clock = clock
        self._lines = lines
        self._registered_at = clock.now().isoformat()
        self._runs: dict[str, _Run] = {}
        self._changed: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._shippers = Shippers(machine.tasks, on_end=self._look_at)
        self._notifications = NotificationPipe(state.changes, self._on_notification)
        self.cluster_admin = NoClusterAdmin(pool)

    async def adopt(self) -> None:
        """Take over what is in the state directory. To be called once, before anything else."""
        for path in self._state.trash.iterdir():
            await asyncio.to_thread(delete_tree, path)
        for files in self._state.found():
            assignment = files.read(Assignment)
            begun = files.read(StatusRecord) is not None or holder(files.lock) is not None
            if assignment is None or not (begun or assignment.refusal):
                # The launcher was killed before it had a supervisor. Should one be about to come up after all, it will
                # find its directory gone; and the order is still there, if there is one.
                await self._discard(files)
                continue
            run = self._runs[assignment.order.allocation] = _Run(files, assignment)
            self._watch(run, None)
            self._look_at(run.allocation)
        log.info("backend.adopted", allocations=len(self._runs))

    async def close(self) -> None:
        """Let go of everything; supervisors, tasks and shippers go on."""
        self._notifications.close()
        self._shippers.close()
        for run in self._runs.values():
            if run.watch is not None:
                run.watch.close()
            for timer in (run.look_again, run.retry):
                if timer is not None:
                    timer.cancel()
            if run.settling is not None:
                await asyncio.gather(run.settling, return_exceptions=True)

    async def existing(self) -> Mapping[str, Existence]:
        return {allocation: run.existence() for allocation, run in self._runs.items()}

    async def seek(self, order: Order) -> bool:
        return order.allocation in self._runs

    async def start(self, order: Order) -> None:
        if order.allocation in self._runs:
            return
        run = _Run(self._state.allocation(order.allocation), self._assign(order))
        self._runs[order.allocation] = run
        try:
            run.files.root.mkdir(mode=0o700, exist_ok=True)
            run.files.write(run.assignment)
            run.files.keep_space(StopRecord)  # whoever ends a task may do so because it has filled the disk
            self._look_at(order.allocation)
            await self._launch(run)
        except BaseException:
            # Whatever it was, the order is still there, and is tried again from the beginning.
            del self._runs[order.allocation]
            await self._discard(run.files)
            raise
        self._look_at(order.allocation)

    async def stop(self, allocation: str, *, grace_s: float, ordered: bool) -> None:
        run = self._runs.get(allocation)
        if run is None:
            return
        stop = StopRecord(deadline=time.time() + grace_s, ordered=ordered)
        before = run.files.read(StopRecord)
        if before is None or stop.deadline < before.deadline:
            run.files.write(stop)
        # Before its first status the supervisor could not stand the signal; after it, it looks for stop.json anyway.
        if run.status() is not None and (pid := holder(run.files.lock)):
            send(pid, signal.SIGTERM)

    async def remove(self, allocation: str) -> None:
        run = self._runs.get(allocation)
        if run is None or run.existence() is not Existence.ENDED:
            return
        await run.settled.wait()
        pods = self._shipped_pods(run)
        if not run.assignment.refusal:
            ended_at = run.files.written_at(StatusRecord) or 0.0
            left_s = self._machine.settings.log_delivery_s - (time.time() - ended_at)
            if not await self._shippers.finish(pods, left_s):
                log.warning("backend.output_lost", allocation=allocation)
                self._tell_lost(run, pods)
        for pod in pods:
            self._shippers.forget(pod)
        given_up = self._give_up(run.files)
        # At once, for nobody may look into the empty place and take the allocation for one that is about to begin.
        del self._runs[allocation]
        if given_up is not None:
            await asyncio.to_thread(delete_tree, given_up)

    async def observe(self, allocation: str) -> AllocationObserved | None:
        run = self._runs.get(allocation)
        if run is None:
            return None
        return observed(
            run.assignment,
            run.status(),
            begun="STARTING" if run.watch is not None else "PULLING",
            node=self._machine.node,
            address=self._machine.settings.address,
            undelivered=self._undelivered(run),
        )

    async def hold_room(self, order: PlaceholderOrder | None) -> None:
        """Nothing: no machine comes for processes."""

    async def capacity(self) -> PoolCapacity:
        node = node_capacity(
            name=self._machine.node,
            address=self._machine.settings.address,
            registered_at=self._registered_at,
            slots=self._slots,
            holders=[(each.order.allocation, each.pods, each.devices) for each in self._live_assignments()],
        )
        # Looked at anew each time: an administrator may have opened a directory, or closed one.
        blocked_by = closed_interpreters(self._machine.python, PYTHON) if self._machine.may_change_user else ""
        return pool_capacity(self._pool, node, self._clock.now().isoformat(), linked_users_blocked_by=blocked_by)

    async def changes(self) -> AsyncGenerator[str, None]:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._changed:
                allocation = next(iter(self._changed))
                del self._changed[allocation]
                yield allocation

    def _live_assignments(self) -> list[Assignment]:
        return [run.assignment for run in self._runs.values() if run.existence() is Existence.LIVE]

    def _assign(self, order: Order) -> Assignment:
        spec = order.spec
        pod_slots = spec.slots_by_pod if spec is not None else (0,)
        description = spec.description if spec is not None else "task"
        held = [device for each in self._live_assignments() for devices in each.devices for device in devices]
        return Assignment(
            order=order,
            pods=tuple(pod_name(order.allocation, rank, description) for rank in range(len(pod_slots))),
            devices=take_devices(device_ids(self._slots), held, pod_slots=pod_slots),
        )

    async def _launch(self, run: _Run) -> None:
        try:
            plan = await asyncio.to_thread(make_plan, self._machine, run.files, run.assignment)
        except (InvalidRequest, OSError) as error:
            if is_no_space(error):
                raise  # the order waits for space as it does for slots
            log.warning("backend.refused", allocation=run.allocation, reason=str(error))
            run.assignment = msgspec.structs.replace(run.assignment, refusal=str(error))
            run.files.write(run.assignment)
            run.settled.set()
            return
        run.files.write(plan)
        self._watch(run, spawn_supervisor(run.files))

    def _watch(self, run: _Run, child: subprocess.Popen[bytes] | None) -> None:
        def over() -> None:
            run.watch = None
            run.settling = asyncio.create_task(self._settle(run), name=f"settle {run.allocation}")

        run.watch = ProcessWatch(run.files.lock, child, over)

    async def _settle(self, run: _Run) -> None:
        """After the supervisor: when it did not finish its work, finish it and write down how it ended."""
        lock = try_lock(run.files.lock)
        if lock is None:
            self._watch(run, None)  # a second one, started by a launcher that was killed at once, had to wait
            return
        try:
            if not is_over(run.assignment, run.status()):
                log.warning("backend.supervisor_lost", allocation=run.allocation)
                for rank in range(len(run.assignment.pods)):
                    await asyncio.to_thread(kill_pod, str(run.files.pod(rank).run))
                last_words = run.files.supervisor_log.read_text(errors="replace").strip()[-500:]
                await _write_at_last(
                    run.files,
                    status_without_supervisor(run.assignment, run.status(), run.files.read(StopRecord), last_words),
                )
        finally:
            os.close(lock)
        run.settled.set()
        self._look_at(run.allocation)

    def _on_notification(self, name: str) -> None:
        for allocation in list(self._runs):
            if token(allocation) == name:
                self._look_at(allocation)

    def _look_at(self, allocation: str) -> None:
        """Do what follows from the present state by itself, and tell whoever listens that it may have changed."""
        run = self._runs.get(allocation)
        if run is None:
            return
        try:
            self._look_after_output(run)
        except OSError as error:
            if not is_no_space(error):
                raise
            log.warning("backend.no_space", allocation=allocation, error=str(error))
            if run.retry is None:
                run.retry = asyncio.get_running_loop().call_later(TRY_AGAIN_S, self._retry, run)
        if run.look_again is None and self._undelivered(run):
            run.look_again = asyncio.get_running_loop().call_later(LAST_LINES_S, self._look_once_more, run)
        self._changed[allocation] = None
        self._wake.set()

    def _look_after_output(self, run: _Run) -> None:
        """See to it that what has ended is sealed, and that a shipper delivers it. Raises OSError."""
        status = run.status()
        if status is None:
            return
        for pod, seen in zip(self._shipped_pods(run), status.pods, strict=True):
            if seen.state == "TERMINATED":
                finish_output(pod.files, seen.exit_code)
            self._shippers.keep(pod)

    def _retry(self, run: _Run) -> None:
        run.retry = None
        self._look_at(run.allocation)

    def _look_once_more(self, run: _Run) -> None:
        run.look_again = None
        self._look_at(run.allocation)

    def _undelivered(self, run: _Run) -> set[int]:
        """Ranks of pods whose end is not to be told yet."""
        status = run.status()
        waits_s = time.time() - (run.files.written_at(StatusRecord) or 0.0)
        if self._machine.tasks.log_intake_url is None or waits_s >= LAST_LINES_S:
            return set()
        return {
            rank
            for rank in range(len(run.assignment.pods))
            if awaits_delivery(status, rank) and not is_shipped(run.files.pod(rank))
        }

    def _tell_lost(self, run: _Run, pods: Sequence[ShippedPod]) -> None:
        """Say how many lines pods have printed that were not delivered; the log writer knows which of them are lost."""
        spec = run.assignment.order.spec
        for pod in pods:
            if spec is not None and not is_shipped(pod.files):
                for stream, printed in printed_by(pod.files).items():
                    key = f"{container_key(pod.allocation, pod.name)}/{stream}"
                    self._lines.say(end_of_writer(spec.task, pod.allocation, key, printed=printed))

    def _shipped_pods(self, run: _Run) -> list[ShippedPod]:
        return [
            ShippedPod(allocation=run.allocation, name=name, node=self._machine.node, files=run.files.pod(rank))
            for rank, name in enumerate(run.assignment.pods)
        ]

    async def _discard(self, files: AllocationFiles) -> None:
        given_up = self._give_up(files)
        if given_up is not None:
            await asyncio.to_thread(delete_tree, given_up)

    def _give_up(self, files: AllocationFiles) -> Path | None:
        """Put the directory of an allocation without a supervisor aside, to be deleted; None when there is none."""
        lock = try_lock(files.lock) if files.root.exists() else None
        if lock is None:
            return None
        try:
            given_up = self._state.trash / f"{files.root.name}-{time.time_ns()}"
            return files.root.rename(given_up)
        finally:
            os.close(lock)


async def _write_at_last(files: AllocationFiles, record: StatusRecord) -> None:
    """Return when it is written, however long the disk is full."""
    while True:
        try:
            files.write(record)
        except OSError as error:
            if not is_no_space(error):
                raise
            log.warning("backend.no_space", directory=str(files.root), error=str(error))
            await asyncio.sleep(TRY_AGAIN_S)
        else:
            return


def delete_tree(path: Path) -> None:
    """Delete a directory with all that tasks left in it, read-only directories included."""
    for directory, names, _ in os.walk(path):
        for name in names:
            below = os.path.join(directory, name)
            if not os.path.islink(below):
                os.chmod(below, 0o700)
    shutil.rmtree(path)
