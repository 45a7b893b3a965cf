"""The process backend: what the state directory says, made true on this machine.

Nothing is kept in memory that could not be read again: a launcher that was killed finds its allocations in the state
directory, each with a supervisor that is still at work, or with the word of how it ended.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import structlog

import services
from libs.clock import Clock
from libs.errors import FailedPrecondition, InvalidRequest
from libs.events.capacity import PoolCapacity
from libs.events.observations import AllocationObserved, FailureKind, PodSeen, PodState
from libs.events.orders import Order
from libs.events.subjects import token
from services.launcher.backends.process.prepare import Machine, find_python, make_plan
from services.launcher.backends.process.probe import find_way
from services.launcher.backends.process.records import (
    AllocationFiles,
    Assignment,
    PodStatus,
    StateFiles,
    Status,
    Stop,
    holder,
    try_lock,
)
from services.launcher.backends.process.settings import ProcessSettings
from services.launcher.backends.process.shippers import ShippedPod, Shippers, finish_output
from services.launcher.backends.process.slots import device_ids, node_capacity, pool_capacity, take_devices
from services.launcher.backends.process.trees import kill_pod, send
from services.launcher.backends.process.view import pod_name
from services.launcher.backends.process.watching import HintPipe, ProcessWatch
from services.launcher.container.settings import TaskSettings
from services.launcher.files import load_scripts
from services.launcher.reconcile import Existence

log = structlog.get_logger()

IMPORT_ROOT: Final = str(Path(services.__path__[0]).resolve().parent)


class _Run:
    """One allocation on this machine."""

    def __init__(self, files: AllocationFiles, assignment: Assignment) -> None:
        self.files = files
        self.assignment = assignment
        self.watch: ProcessWatch | None = None
        self.settling: asyncio.Task[None] | None = None

    @property
    def allocation(self) -> str:
        return self.assignment.order.allocation

    def status(self) -> Status | None:
        return self.files.read(Status)

    def existence(self) -> Existence:
        status = self.status()
        is_over = self.assignment.refusal or (status is not None and status.ended)
        return Existence.ENDED if is_over else Existence.LIVE


class ProcessBackend:
    """See ``backends/protocol.py`` for what the methods promise."""

    def __init__(self, *, pool: str, machine: Machine, state: StateFiles, slots: int, clock: Clock) -> None:
        self._pool = pool
        self._machine = machine
        self._state = state
        self._slots = slots
        self._clock = clock
        self._registered_at = clock.now().isoformat()
        self._runs: dict[str, _Run] = {}
        self._changed: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._shippers = Shippers(machine.tasks, on_end=self._look_at)
        self._hints = HintPipe(state.changes, self._hinted)

    async def adopt(self) -> None:
        """Take over what is in the state directory."""
        for path in self._state.trash.iterdir():
            await asyncio.to_thread(delete_tree, path)
        for files in self._state.found():
            assignment = files.read(Assignment)
            begun = files.read(Status) is not None or holder(files.lock) is not None
            if assignment is None or not (begun or assignment.refusal):
                # The launcher was killed before it had a supervisor. If one is about to come up after all, it will
                # find its directory gone; whoever wants the allocation says so again.
                await self._discard(files)
                continue
            run = self._runs[assignment.order.allocation] = _Run(files, assignment)
            if not assignment.refusal:
                self._watch(run, None)
            self._look_at(run.allocation)
        log.info("backend.adopted", allocations=len(self._runs))

    async def close(self) -> None:
        """Let go of everything; supervisors, tasks and shippers go on."""
        self._hints.close()
        self._shippers.close()
        for run in self._runs.values():
            if run.watch is not None:
                run.watch.close()
            if run.settling is not None:
                await asyncio.gather(run.settling, return_exceptions=True)

    async def existing(self) -> Mapping[str, Existence]:
        return {allocation: run.existence() for allocation, run in self._runs.items()}

    async def start(self, order: Order) -> None:
        if order.allocation in self._runs:
            return
        run = _Run(self._state.allocation(order.allocation), self._assign(order))
        self._runs[order.allocation] = run
        try:
            run.files.root.mkdir(mode=0o700, exist_ok=True)
            run.files.write(run.assignment)
            self._look_at(order.allocation)
            await self._launch(run)
        except BaseException:
            # Whatever it was, the order is still there, and is tried again from the beginning.
            del self._runs[order.allocation]
            if holder(run.files.lock) is None:
                await self._discard(run.files)
            raise
        self._look_at(order.allocation)

    async def stop(self, allocation: str, *, grace_s: float, ordered: bool) -> None:
        run = self._runs.get(allocation)
        if run is None:
            return
        stop = Stop(deadline=time.time() + grace_s, ordered=ordered)
        before = run.files.read(Stop)
        if before is None or stop.deadline < before.deadline:
            run.files.write(stop)
        # Before its first status the supervisor could not stand the signal; after it, it looks for stop.json anyway.
        if run.status() is not None and (pid := holder(run.files.lock)):
            send(pid, signal.SIGTERM)

    async def remove(self, allocation: str) -> None:
        run = self._runs.get(allocation)
        if run is None or run.existence() is not Existence.ENDED:
            return
        pods = self._shipped_pods(run)
        if not run.assignment.refusal:
            ended_at = run.files.written_at(Status) or 0.0
            left_s = self._machine.settings.log_delivery_s - (time.time() - ended_at)
            if not await self._shippers.finish(pods, left_s):
                log.warning("backend.output_lost", allocation=allocation)
        for pod in pods:
            self._shippers.forget(pod)
        if run.watch is not None:
            run.watch.close()
        await self._discard(run.files)
        self._runs.pop(allocation, None)

    async def observe(self, allocation: str) -> AllocationObserved | None:
        run = self._runs.get(allocation)
        if run is None:
            return None
        assignment = run.assignment
        status = run.status()
        failure: FailureKind = "LAUNCH_ERROR" if assignment.refusal else ""
        return AllocationObserved(
            allocation=allocation,
            pool=self._pool,
            revision=0,
            pods=() if assignment.refusal else self._pods_seen(run, status),
            num_pods=len(assignment.pods),
            gone=run.existence() is Existence.ENDED,
            stopped=status is not None and status.stopped,
            failure=failure,
            message=assignment.refusal,
        )

    async def capacity(self) -> PoolCapacity:
        live = [run.assignment for run in self._runs.values() if run.existence() is Existence.LIVE]
        node = node_capacity(
            name=self._machine.node,
            address=self._machine.settings.address,
            registered_at=self._registered_at,
            slots=self._slots,
            holders=[(each.order.allocation, each.pods, each.devices) for each in live],
        )
        return pool_capacity(self._pool, node, self._clock.now().isoformat())

    async def changes(self) -> AsyncIterator[str]:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._changed:
                allocation = next(iter(self._changed))
                del self._changed[allocation]
                yield allocation

    def _assign(self, order: Order) -> Assignment:
        spec = order.spec
        num_pods, per_pod = (spec.num_pods, spec.slots_per_pod) if spec is not None else (1, 0)
        held = [
            device
            for run in self._runs.values()
            if run.existence() is Existence.LIVE
            for devices in run.assignment.devices
            for device in devices
        ]
        description = spec.description if spec is not None else "task"
        return Assignment(
            order=order,
            pods=tuple(pod_name(order.allocation, rank, description) for rank in range(num_pods)),
            devices=take_devices(device_ids(self._slots), held, num_pods=num_pods, slots_per_pod=per_pod),
        )

    async def _launch(self, run: _Run) -> None:
        try:
            plan = await asyncio.to_thread(make_plan, self._machine, run.files, run.assignment)
        except (InvalidRequest, OSError) as error:
            log.warning("backend.refused", allocation=run.allocation, reason=str(error))
            run.assignment = msgspec.structs.replace(run.assignment, refusal=str(error))
            run.files.write(run.assignment)
            return
        run.files.write(plan)
        with run.files.supervisor_log.open("ab") as output:
            child = subprocess.Popen(  # noqa: S603  our own module
                [
                    os.path.realpath(sys.executable),
                    *("-S", "-E", "-s", "-m", "services.launcher.backends.process.supervise"),
                    str(run.files.root),
                ],
                cwd=IMPORT_ROOT,
                # Secrets of the launcher have no business in the environment of what runs beside tasks.
                env={name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._watch(run, child)

    def _watch(self, run: _Run, child: subprocess.Popen[bytes] | None) -> None:
        def over() -> None:
            run.watch = None
            run.settling = asyncio.create_task(self._settle(run), name=f"settle {run.allocation}")

        run.watch = ProcessWatch(run.files.lock, child, over)

    async def _settle(self, run: _Run) -> None:
        """After the supervisor: when it did not finish its work, finish it and write down how it ended."""
        status = run.status()
        if status is None or not status.ended:
            lock = try_lock(run.files.lock)
            if lock is None:
                self._watch(run, None)  # another supervisor was started by a launcher before us, and waited
                return
            try:
                log.warning("backend.supervisor_lost", allocation=run.allocation)
                for rank in range(len(run.assignment.pods)):
                    await asyncio.to_thread(kill_pod, str(run.files.pod(rank).run))
                run.files.write(self._lost(run, status))
            finally:
                os.close(lock)
        self._look_at(run.allocation)

    def _lost(self, run: _Run, status: Status | None) -> Status:
        if status is None:
            last_words = run.files.supervisor_log.read_text(errors="replace").strip()[-500:]
            missing = PodStatus(state="TERMINATED", failure="ABORTED", message=f"supervisor failed: {last_words}")
            return Status(pods=(missing,) * len(run.assignment.pods), stopped=False, ended=True)
        lost = PodStatus(
            state="TERMINATED",
            failure="NODE_LOST",
            message="the supervisor of the task was killed, and the task with it",
        )
        pods = tuple(pod if pod.state == "TERMINATED" else lost for pod in status.pods)
        return Status(pods=pods, stopped=status.stopped, ended=True)

    def _pods_seen(self, run: _Run, status: Status | None) -> tuple[PodSeen, ...]:
        begun: PodState = "STARTING" if run.watch is not None else "PULLING"
        pods = status.pods if status is not None else (PodStatus(state=begun),) * len(run.assignment.pods)
        return tuple(
            PodSeen(
                name=name,
                state=pod.state,
                node=self._machine.node,
                addresses=(self._machine.settings.address,),
                devices=devices,
                exit_code=pod.exit_code,
                failure=pod.failure,
                message=pod.message,
            )
            for name, devices, pod in zip(run.assignment.pods, run.assignment.devices, pods, strict=True)
        )

    def _hinted(self, name: str) -> None:
        for allocation in self._runs:
            if token(allocation) == name:
                self._look_at(allocation)

    def _look_at(self, allocation: str) -> None:
        """Do what follows from the present state by itself, and tell whoever listens that it may have changed."""
        run = self._runs.get(allocation)
        if run is None:
            return
        status = run.status()
        for rank, pod in enumerate(self._shipped_pods(run) if status is not None else ()):
            seen = status.pods[rank] if status is not None else None
            if seen is not None and seen.state == "TERMINATED":
                finish_output(pod.files, seen.exit_code)
            self._shippers.keep(pod)
        self._changed[allocation] = None
        self._wake.set()

    def _shipped_pods(self, run: _Run) -> list[ShippedPod]:
        return [
            ShippedPod(allocation=run.allocation, name=name, node=self._machine.node, files=run.files.pod(rank))
            for rank, name in enumerate(run.assignment.pods)
        ]

    async def _discard(self, files: AllocationFiles) -> None:
        """Delete the directory of an allocation that has no supervisor."""
        lock = try_lock(files.lock) if files.root.exists() else None
        if lock is None:
            return
        try:
            given_up = self._state.trash / f"{files.root.name}-{time.time_ns()}"
            files.root.rename(given_up)
        finally:
            os.close(lock)
        await asyncio.to_thread(delete_tree, given_up)


def delete_tree(path: Path) -> None:
    """Delete a directory with all that tasks left in it, read-only directories included."""
    for directory, _, _ in os.walk(path):
        os.chmod(directory, 0o700)
    shutil.rmtree(path)


@asynccontextmanager
async def open_process_backend(
    *, pool: str, settings: ProcessSettings, tasks: TaskSettings, clock: Clock, environ: Mapping[str, str]
) -> AsyncIterator[ProcessBackend]:
    """The backend of this machine for the duration of the block; tasks outlive it.

    Raises CannotIsolate when the machine does not allow it, InvalidRequest for settings that cannot work, and
    FailedPrecondition when another launcher uses the state directory.
    """
    with_user_namespace = await find_way(os.path.realpath(sys.executable), IMPORT_ROOT)
    state = StateFiles(Path(settings.state_dir).resolve())
    state.make()
    lock = try_lock(state.lock)
    if lock is None:
        raise FailedPrecondition(f"another launcher is using the state directory {state.root}")
    cert = tasks.master_cert_file
    machine = Machine(
        settings=settings,
        tasks=tasks,
        state_dir=str(state.root),
        node=settings.node_name or os.uname().nodename,
        python=find_python(settings.python),
        with_user_namespace=with_user_namespace,
        may_change_user=os.geteuid() == 0 and not with_user_namespace,
        changes=str(state.changes),
        environ=dict(environ),
        scripts=load_scripts(),
        master_cert=Path(cert).read_bytes() if cert is not None and cert != "noverify" else None,
    )
    slots = settings.slots if settings.slots is not None else os.cpu_count() or 1
    backend = ProcessBackend(pool=pool, machine=machine, state=state, slots=slots, clock=clock)
    try:
        await backend.adopt()
        yield backend
    finally:
        await backend.close()
        os.close(lock)
