"""An engine that does one step at a time and may be killed in any of them, and tasks whose fate is in their names.

Nothing here waits or happens by itself: a test says what happens next. What a task does follows from the request id of
its trial, and so from the seed of the search: experiments of one seed differ only in what the order does to them.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.clock import SystemClock
from libs.db.engine import Database
from libs.db.tables.tasks import allocations
from libs.db.tables.trials import trial_tasks, trials
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.events.observations import AllocationObserved, ObservedPod
from services.scheduler.allocations.reconciler import AllocationReconciler
from services.scheduler.experiments.reconciler import ExperimentReconciler
from services.scheduler.queue.pool_queue import PoolQueue
from services.scheduler.settings import QueueSettings
from tests.integration.scheduler.world import World

ENDED: Final = frozenset({"COMPLETED", "CANCELED", "ERROR"})
Dies = Callable[[int], bool]


def lives(_transaction: int) -> bool:
    return False


def capacity_of(slots: int) -> PoolCapacity:
    devices = tuple(Device(id=f"{n:03}") for n in range(slots))
    node = NodeCapacity(name="node0", devices=devices)
    return PoolCapacity(pool="default", backend="process", nodes=(node,), max_aux_containers_per_node=100)


class KilledError(Exception):
    """The engine is no more."""


class MortalDatabase(Database):
    """The database of an engine that is killed, before it commits or after, in transactions that ``dies`` names."""

    def __init__(self, real: Database, *, dies: Dies, after_commit: bool) -> None:
        self._real = real
        self._dies = dies
        self._after_commit = after_commit
        self.transactions = 0
        self.deaths = 0

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        dies = self._dies(self.transactions)
        self.transactions += 1
        self.deaths += dies
        async with self._real.transaction() as connection:
            yield connection
            if dies and not self._after_commit:
                raise KilledError
        if dies:
            raise KilledError

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        async with self._real.read() as connection:
            yield connection


@dataclass
class Task:
    """An attempt at a trial: what it does next, and what was observed of it so far."""

    allocation: str
    trial: int
    seen: list[AllocationObserved] = field(default_factory=list)
    reports: int = 0

    @property
    def is_over(self) -> bool:
        return bool(self.seen) and self.seen[-1].pods[0].state == "TERMINATED"


class Stepwise:
    """One experiment with everything around it."""

    def __init__(
        self,
        world: World,
        experiment: int,
        *,
        steps: int,
        slots: int = 3,
        dies: Dies = lives,
        after_commit: bool = False,
    ) -> None:
        """
        steps               validations that a task reports when nobody stops it
        dies, after_commit  see ``MortalDatabase``
        """
        self.world = world
        self.experiment = experiment
        self.tasks: dict[str, Task] = {}
        self.db = MortalDatabase(world.db, dies=dies, after_commit=after_commit)
        self._steps = steps
        self._capacity = capacity_of(slots)
        self._start_engine()

    def _start_engine(self) -> None:
        common: dict[str, Any] = {"db": self.db, "clock": SystemClock()}
        cluster = self.world.cluster
        self._experiments = ExperimentReconciler(
            cluster=cluster, capacity=lambda _pool: self._capacity, log_wait=timedelta(), **common
        )
        self._allocations = AllocationReconciler(ended=lambda _row: None, **common)
        self._queue = PoolQueue(
            cluster=cluster,
            pool=cluster.resource_pools[0],
            capacity=lambda _pool: self._capacity,
            ended=lambda _row: None,
            settings=QueueSettings(),
            **common,
        )

    async def reconcile(self) -> None:
        await self._survive(lambda: self._experiments.reconcile(self.experiment))

    async def plan(self) -> None:
        await self._survive(self._plan)
        given = (
            select(allocations.c.allocation_id, trial_tasks.c.trial_id)
            .join(trial_tasks, trial_tasks.c.task_id == allocations.c.task_id)
            .join(trials, trials.c.id == trial_tasks.c.trial_id)
            .where(trials.c.experiment_id == self.experiment, allocations.c.state == "ASSIGNED")
        )
        async with self.world.db.read() as connection:
            for row in await connection.execute(given):
                self.tasks.setdefault(row.allocation_id, Task(row.allocation_id, row.trial_id))

    async def _plan(self) -> None:
        await self._queue.plan_once()

    async def advance(self, task: Task) -> None:
        """The task does what it does next, and somebody sees it."""
        told = select(allocations.c.killed_at, allocations.c.preempted_at)
        async with self.world.db.read() as connection:
            row = (await connection.execute(told.where(allocations.c.allocation_id == task.allocation))).one()
        if not task.seen:
            await self._see(task, "RUNNING")
        elif row.killed_at is not None:
            await self._see(task, "TERMINATED", exit_code=137, failure="FAILED")
        elif row.preempted_at is not None:
            await self.world.api.ack(task.allocation)
            await self._see(task, "TERMINATED", exit_code=0)
        elif task.reports < self._steps:
            task.reports += 1
            metrics = {"loss": luck(task.allocation.rpartition(".")[0], task.reports), "batches": task.reports}
            await self.world.api.tell_search(task.trial, "validation", {"metrics": metrics})
        else:
            failed = _fails(task.allocation)
            await self._see(task, "TERMINATED", exit_code=int(failed), failure="FAILED" if failed else "")

    async def observe(self, seen: AllocationObserved) -> None:
        """Also again, and also late."""
        await self._survive(lambda: self._allocations.observe(seen))

    async def finish(self, *, at_once: bool = False) -> None:
        """Let everything happen in turn until the experiment has ended.

        at_once  the engine looks when all tasks have taken a step, as it does when it has much to do
        """
        while True:
            await self.reconcile()
            await self.plan()
            going = [task for task in self.tasks.values() if not task.is_over]
            for task in sorted(going, key=lambda task: task.trial):
                await self.advance(task)
                if not at_once:
                    await self.reconcile()
            if await self.world.api.state(self.experiment) in ENDED:
                return
            assert going, "nothing happens any more"

    async def outcome(self) -> dict[str, Any]:
        """What anybody could see of the experiment, without ids that count over all experiments."""
        row = await self.world.api.experiment(self.experiment)
        assert row is not None
        rows = await self.world.api.trials(self.experiment)
        attempts = await self.world.api.allocations(self.experiment)
        numbers = sorted(trial["local_id"] for trial in rows)  # the project counts on over all experiments
        names = ("request_id", "state", "restarts", "run_id", "seed", "hparams", "error")
        return {
            "experiment": (row["state"], row["progress"], row["error"]),
            "trials": sorted(([trial[name] for name in names] for trial in rows), key=lambda one: str(one[0])),
            "local ids": [number - min(numbers) for number in numbers],
            "allocations": sorted(
                (one["allocation_id"].partition(".")[2], one["state"], one["exit_processed"]) for one in attempts
            ),
            "unheard": await self.world.api.sql(
                "SELECT kind FROM searcher_events WHERE experiment_id = :e", e=self.experiment
            ),
            "sessions": await self.world.api.sql(
                "SELECT allocation_id FROM allocation_sessions WHERE revoked_at IS NULL AND allocation_id LIKE :e",
                e=f"{self.experiment}.%",
            ),
        }

    async def _see(self, task: Task, state: str, **pod: Any) -> None:
        pods = (ObservedPod(name="p", node="node0", state=state, **pod),)  # type: ignore[arg-type]
        seen = AllocationObserved(allocation=task.allocation, pool="default", revision=len(task.seen) + 1, pods=pods)
        task.seen.append(seen)
        await self.observe(seen)

    async def _survive(self, step: Callable[[], Awaitable[Any]]) -> None:
        """Do a step; when the engine is killed in it, another one does it again."""
        try:
            await step()
        except KilledError:
            self._start_engine()
            await step()


def luck(*what: object) -> float:
    """A number from 0 to 1 that follows from ``what``, without the experiment in a task's name."""
    text = "/".join(str(one).partition(".")[2] or str(one) for one in what)
    return hashlib.sha256(text.encode()).digest()[0] / 255


def _fails(allocation: str) -> bool:
    """Nearly half of all attempts."""
    return luck(allocation) < 0.45
