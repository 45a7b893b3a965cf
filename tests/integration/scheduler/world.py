"""What surrounds the scheduler in these tests: the api's writes, and a launcher that does as it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.engine import RowMapping

from libs.bus import Bus, CoreMessage, SnapshotEnd
from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig, PoolConfig, ResourceManagerConfig
from libs.config.defaults import with_defaults
from libs.config.experiment import normalise_experiment_config
from libs.db.engine import Database
from libs.db.new_trials import Origin
from libs.db.outbox import announce
from libs.db.relay import relay_outbox
from libs.db.tables.checkpoints import checkpoint_gc_requests
from libs.db.tables.cluster import node_overrides
from libs.db.tables.experiments import experiments, searcher_events
from libs.db.tables.tasks import allocations, jobs
from libs.db.tables.trials import trials
from libs.events import subjects
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.events.changes import AllocationChanged, ExperimentChanged, JobChanged, PoolChanged, TrialChanged
from libs.events.cluster_admin import Done
from libs.events.observation_requests import REPORT_AGAIN, ReportAgainRequest
from libs.events.observations import AllocationObserved, ObservedPod
from libs.events.orders import Order
from libs.run_until_first_exits import end
from libs.searchers.search_start import start_search
from libs.states.experiment import ExperimentState, Trigger, step
from libs.states.trial import TrialState, asked_for
from services.api.actions.experiments.first_trials import insert_first_trials
from services.api.actions.experiments.trial_states import change_trial_states
from services.scheduler.controller import SchedulerController
from services.scheduler.settings import EngineSettings, QueueSettings, SchedulerSettings
from tests.builders import insert_experiment, insert_job
from tests.harness import eventually

KUBERNETES = ClusterConfig(
    resource_manager=ResourceManagerConfig(type="kubernetes", cluster_name="here", max_slots_per_pod=8),
    resource_pools=(PoolConfig(pool_name="default"), PoolConfig(pool_name="other")),
)
SINGLE: dict[str, Any] = {"name": "single", "metric": "loss"}
USUAL = SchedulerSettings(engine=EngineSettings(log_wait_s=0))  # the launcher of these tests ships no logs
QUICK = SchedulerSettings(
    queue=QueueSettings(plan_interval_s=0.01, resync_s=0.5), engine=EngineSettings(resync_s=0.3, log_wait_s=0)
)
"""For tests that take notifications or whole schedulers away, and wait for what finds out all the same."""


class Api:
    """Writes what the api writes, in the same transactions."""

    def __init__(self, db: Database) -> None:
        self.db = db

    async def create(
        self,
        *,
        activate: bool = True,
        searcher: dict[str, Any] = SINGLE,
        hyperparameters: dict[str, Any] | None = None,
        slots: int = 1,
        seed: int = 7,
        pool: str = "default",
        begun: bool = True,
        **config: Any,
    ) -> int:
        """``begun``: with the first trials of its search; a search that has to begin again has none in store."""
        given = {
            "entrypoint": "python3 train.py",
            "searcher": searcher,
            "hyperparameters": hyperparameters or {},
            "resources": {"slots_per_trial": slots, "resource_pool": pool},
            "reproducibility": {"experiment_seed": seed},
            "checkpoint_storage": {"type": "shared_fs", "host_path": "/checkpoints"},
            "preemption_timeout": 3600,
            **config,
        }
        stored = with_defaults(normalise_experiment_config(given), seed=seed, name="test")
        now = datetime.now(UTC)
        asked = "ACTIVE" if activate else "PAUSED"
        async with self.db.transaction() as connection:
            priority = stored["resources"]["priority"]
            job = await insert_job(connection, owner_id=2, pool=pool, priority=priority, submitted_at=now)
            ident = await insert_experiment(
                connection, state=asked, config=stored, owner_id=2, job_id=job, start_time=now
            )
            await announce(
                connection,
                ExperimentChanged(experiment_id=ident, what="created", state=asked),
                JobChanged(job_id=job, what="submitted", pool=pool),
            )
            if begun:
                origin = Origin(id=ident, project_id=1, job_id=job, owner_id=2, config=stored)
                state = TrialState.ACTIVE if activate else TrialState.PAUSED
                await insert_first_trials(connection, origin, start_search(stored), state=state, now=now)
        return int(ident)

    async def ask(self, experiment: int, trigger: Trigger) -> None:
        async with self.db.transaction() as connection:
            query = select(experiments.c.state).where(experiments.c.id == experiment).with_for_update()
            state = step(ExperimentState((await connection.execute(query)).scalar_one()), trigger)
            assert state is not None
            values: dict[str, Any] = {"state": state}
            await connection.execute(update(experiments).where(experiments.c.id == experiment).values(values))
            await announce(connection, ExperimentChanged(experiment_id=experiment, what="state", state=state))
            await change_trial_states(connection, experiment, state)

    async def set_priority(self, experiment: int, priority: int, *, notify: bool = True) -> None:
        async with self.db.transaction() as connection:
            query = select(experiments.c.config, experiments.c.job_id).where(experiments.c.id == experiment)
            found = (await connection.execute(query.with_for_update())).one()
            config = {**found.config, "resources": {**found.config["resources"], "priority": priority}}
            await connection.execute(update(experiments).where(experiments.c.id == experiment).values(config=config))
            await connection.execute(update(jobs).where(jobs.c.job_id == found.job_id).values(priority=priority))
            if notify:
                await announce(
                    connection,
                    ExperimentChanged(experiment_id=experiment, what="edited"),
                    JobChanged(job_id=found.job_id, what="changed", pool="default", priority=priority),
                )

    async def kill_trial(self, trial: int) -> None:
        async with self.db.transaction() as connection:
            query = select(trials.c.state, trials.c.experiment_id).where(trials.c.id == trial).with_for_update()
            found = (await connection.execute(query)).one()
            state = asked_for(TrialState(found.state), TrialState.STOPPING_KILLED)
            await connection.execute(update(trials).where(trials.c.id == trial).values(state=state))
            await announce(
                connection,
                TrialChanged(trial_id=trial, experiment_id=found.experiment_id, what="state", state=state),
            )

    async def tell_search(self, experiment: int, trial: int, kind: str, payload: dict[str, Any]) -> None:
        async with self.db.transaction() as connection:
            await connection.execute(
                insert(searcher_events).values(experiment_id=experiment, trial_id=trial, kind=kind, payload=payload)
            )
            await announce(connection, ExperimentChanged(experiment_id=experiment, what="searcher"))

    async def report_invalid_hp(self, experiment: int, trial: int, *, deadline_s: float = 10.0) -> None:
        async with self.db.transaction() as connection:
            deadline = datetime.now(UTC) + timedelta(seconds=deadline_s)
            changed = update(trials).where(trials.c.id == trial)
            await connection.execute(changed.values(early_exit_reason="INVALID_HP", early_exit_deadline=deadline))
        await self.tell_search(experiment, trial, "early_exit", {"reason": "INVALID_HP"})

    async def ready(self, allocation: str) -> None:
        async with self.db.transaction() as connection:
            mine = update(allocations).where(allocations.c.allocation_id == allocation)
            await connection.execute(mine.values(is_ready=True, state="RUNNING"))

    async def ack(self, allocation: str) -> None:
        async with self.db.transaction() as connection:
            mine = update(allocations).where(allocations.c.allocation_id == allocation)
            await connection.execute(mine.values(preempt_acked=True))
            await announce(connection, AllocationChanged(allocation_id=allocation, task_id="", what="signal"))

    async def ask_for_gc(self, experiment: int, *, notify: bool = True, **request: Any) -> None:
        async with self.db.transaction() as connection:
            await connection.execute(insert(checkpoint_gc_requests).values(experiment_id=experiment, **request))
            if notify:
                await announce(connection, ExperimentChanged(experiment_id=experiment, what="edited"))

    async def disable_node(self, node: str, *, drain: bool) -> None:
        async with self.db.transaction() as connection:
            await connection.execute(insert(node_overrides).values(node=node, draining=drain))
            await announce(connection, PoolChanged(pool="default", what="capacity"))

    async def enable_node(self, node: str) -> None:
        async with self.db.transaction() as connection:
            await connection.execute(delete(node_overrides).where(node_overrides.c.node == node))
            await announce(connection, PoolChanged(pool="default", what="capacity"))

    async def experiment(self, ident: int) -> RowMapping | None:
        async with self.db.read() as connection:
            query = select(experiments).where(experiments.c.id == ident)
            return (await connection.execute(query)).mappings().first()

    async def state(self, ident: int) -> str | None:
        row = await self.experiment(ident)
        return row["state"] if row else None

    async def trials(self, experiment: int) -> list[RowMapping]:
        async with self.db.read() as connection:
            query = select(trials).where(trials.c.experiment_id == experiment).order_by(trials.c.id)
            return list((await connection.execute(query)).mappings())

    async def allocations(self, experiment: int | None = None) -> list[RowMapping]:
        async with self.db.read() as connection:
            query = select(allocations).order_by(allocations.c.requested_at, allocations.c.allocation_id)
            rows = (await connection.execute(query)).mappings()
            return [row for row in rows if experiment is None or row["task_id"].startswith(f"{experiment}.")]

    async def allocation(self, ident: str) -> RowMapping:
        return next(row for row in await self.allocations() if row["allocation_id"] == ident)

    async def sql(self, statement: str, **parameters: Any) -> list[Any]:
        async with self.db.transaction() as connection:
            result = await connection.execute(text(statement), parameters)
            return list(result.scalars()) if result.returns_rows else []

    async def ended(self, experiment: int, state: str) -> None:
        await eventually(self._is(experiment, state), what=f"experiment {experiment} is {state}")

    def _is(self, experiment: int, state: str) -> Callable[[], Any]:
        async def look() -> bool:
            return await self.state(experiment) == state

        return look


class FakeLauncher:
    """Reads orders and publishes observations; tasks run until a test ends them, and stop when they are told to."""

    def __init__(self, bus: Bus, pool: str = "default") -> None:
        self.bus = bus
        self.pool = pool
        self.orders: dict[str, Order] = {}
        self.specs: dict[str, Order] = {}
        """Every allocation ever ordered to run, with its first order."""
        self.stops: dict[str, Order] = {}
        """Every allocation ever ordered to stop, with its last order to do so."""
        self.reorders: list[str] = []
        """Allocations whose order to run changed after the first."""
        self.on_run: Callable[[Order], Any] | None = None
        """Called for every new allocation instead of reporting that it runs."""
        self.obeys = True
        """Whether tasks stop when they are told to."""
        self.said: dict[str, AllocationObserved] = {}
        """The last observation of each allocation."""
        self._over: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def offer(self, slots: int = 8, *, nodes: int = 1, **more: Any) -> None:
        """Nodes with free slots."""
        devices = tuple(Device(id=f"{i:03}") for i in range(slots))
        await self.offer_nodes(*(NodeCapacity(name=f"node{n}", devices=devices) for n in range(nodes)), **more)

    async def offer_nodes(self, *nodes: NodeCapacity, aux: int = 100, **more: Any) -> None:
        capacity = PoolCapacity(pool=self.pool, backend="process", nodes=nodes, max_aux_containers_per_node=aux, **more)
        bucket = self.bus.bucket(subjects.CAPACITY_BUCKET)
        await bucket.put(subjects.capacity_key(self.pool), msgspec.json.encode(capacity))

    async def run(self) -> None:
        keys: dict[str, str] = {}
        async with (
            self.bus.serve(subjects.launcher_rpc(self.pool, REPORT_AGAIN), self._report_again),
            aclosing(self.bus.bucket(subjects.ORDERS_BUCKET).watch(subjects.orders_of(self.pool))) as changes,
        ):
            async for change in changes:
                if isinstance(change, SnapshotEnd):
                    continue
                if change.value is None:
                    self.orders.pop(keys.get(change.key, ""), None)
                    continue
                order = msgspec.json.decode(change.value, type=Order)
                keys[change.key] = order.allocation
                self.orders[order.allocation] = order
                await self._obey(order)

    async def _obey(self, order: Order) -> None:
        ident = order.allocation
        if order.desired == "stop":
            self.stops[ident] = order
        if order.desired == "run":
            if ident in self.specs:
                self.reorders.append(ident)
                return
            self.specs[ident] = order
            if self.on_run is None:
                await self.see(ident, "RUNNING")
            else:
                task = asyncio.ensure_future(self.on_run(order))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
        elif self.obeys and ident not in self._over:
            self._over.add(ident)
            pods = self._pods(ident, "TERMINATED", exit_code=137, failure="FAILED") if ident in self.specs else ()
            await self._publish(ident, pods=pods, stopped=True, gone=not pods)

    async def see(self, allocation: str, state: str, **pod: Any) -> None:
        """Report all pods of ``allocation`` as being in ``state``."""
        if state == "TERMINATED":
            self._over.add(allocation)
        await self._publish(allocation, pods=self._pods(allocation, state, **pod))

    async def exit(self, allocation: str, code: int = 0) -> None:
        await self.see(allocation, "TERMINATED", exit_code=code, failure="FAILED" if code else "")

    async def lose_node(self, allocation: str) -> None:
        await self.see(allocation, "TERMINATED", failure="NODE_LOST", message="node0 is gone")

    def _pods(self, allocation: str, state: str, **pod: Any) -> tuple[ObservedPod, ...]:
        spec = self.specs[allocation].spec
        assert spec is not None
        return tuple(
            ObservedPod(name=f"{allocation}-{rank}", state=state, node="node0", **pod)  # type: ignore[arg-type]
            for rank in range(spec.num_pods)
        )

    async def _publish(self, allocation: str, **fields: Any) -> None:
        before = self.said.get(allocation)
        revision = before.revision + 1 if before is not None else 1
        seen = AllocationObserved(allocation=allocation, pool=self.pool, revision=revision, **fields)
        self.said[allocation] = seen
        await self.publish(seen)

    async def _report_again(self, message: CoreMessage) -> bytes:
        for allocation, heard in msgspec.json.decode(message.data, type=ReportAgainRequest).heard.items():
            seen = self.said.get(allocation)
            if seen is not None and seen.revision != heard:
                self.said[allocation] = msgspec.structs.replace(seen, revision=seen.revision + 1)
                await self.publish(self.said[allocation])
        return msgspec.json.encode(Done())

    async def publish(self, seen: AllocationObserved) -> None:
        await self.bus.publish(subjects.observed(seen.pool, seen.allocation), msgspec.json.encode(seen))

    async def running(self, count: int = 1) -> list[str]:
        """Wait until ``count`` allocations were ever ordered to run; returns them in the order of the orders."""
        await eventually(lambda: len(self.specs) >= count, what=f"{count} allocations ordered to run")
        return list(self.specs)


@asynccontextmanager
async def background(*work: Any) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Run coroutines beside the block; what they raise fails the test, unless the block cancels them."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        yield tasks
    finally:
        failed = [task.exception() for task in tasks if task.done() and not task.cancelled()]
        await end(*tasks)
    assert not [error for error in failed if error is not None], failed


class World:
    def __init__(self, db: Database, bus: Bus, cluster: ClusterConfig) -> None:
        self.db = db
        self.bus = bus
        self.cluster = cluster
        self.api = Api(db)
        self.launcher = FakeLauncher(bus)

    def scheduler(self, settings: SchedulerSettings = USUAL) -> SchedulerController:
        return SchedulerController(
            db=self.db, bus=self.bus, clock=SystemClock(), cluster=self.cluster, settings=settings
        )

    @asynccontextmanager
    async def scheduling(self, settings: SchedulerSettings = USUAL, *, schedulers: int = 1) -> AsyncIterator[World]:
        """The outbox relayed, a launcher with 8 slots, and schedulers at work."""
        await self.launcher.offer()
        loops = [self.scheduler(settings).run() for _ in range(schedulers)]
        async with background(relay_outbox(self.db, self.bus), self.launcher.run(), *loops):
            yield self
