"""The controller of the active scheduler: runs its loops, and says which part reconciles which kind of object."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Final

import msgspec
import structlog

from libs.bus import Bus, CoreMessage
from libs.bus.headers import MSG_ID, number_of
from libs.capacity import CapacityView
from libs.clock import Clock
from libs.cluster.config import ClusterConfig
from libs.db.engine import Database
from libs.errors import Unavailable
from libs.events import subjects
from libs.events.capacity import PoolCapacity
from libs.events.reconcile_requests import ReconcileRequest
from libs.ids import task_of_allocation
from libs.run_until_first_exits import run_until_first_exits
from libs.tasks.generic import TASK_TYPE as GENERIC_TASK
from services.scheduler.allocations.absent_polls import AbsentPolls
from services.scheduler.allocations.clearing import MaintenanceClearing
from services.scheduler.allocations.missed_observations import MissedObservations
from services.scheduler.allocations.overdue import OverdueAllocations
from services.scheduler.allocations.reconciler import AllocationReconciler
from services.scheduler.deletion.experiments import ExperimentDeletion
from services.scheduler.deletion.housekeeping import Housekeeping
from services.scheduler.deletion.namespaces import NamespaceDeletion
from services.scheduler.deletion.trials import TrialDeletion
from services.scheduler.deletion.workspaces import WorkspaceDeletion
from services.scheduler.experiments.lost_trials import LostTrials
from services.scheduler.experiments.reconciler import ExperimentReconciler
from services.scheduler.forecast.forecaster import Forecaster
from services.scheduler.forecast.past_runs import PastRunsCache
from services.scheduler.forecast.queue_checks import QueueChecks
from services.scheduler.orders.order_keys import OrderKeys
from services.scheduler.orders.orders import OrderRepair
from services.scheduler.queue.pool_queue import PoolQueue
from services.scheduler.queue.reported.capacity_news import CapacityNews
from services.scheduler.queue.reported.closed_nodes import ClosedNodes
from services.scheduler.queue.wait_lines import WaitLines
from services.scheduler.row_counts import RowCounts
from services.scheduler.settings import SchedulerSettings
from services.scheduler.tasks.ending import TaskEnding, owner_of
from services.scheduler.tasks.generic import GenericTasks
from services.scheduler.tasks.idle_ending import IdleEnding, api_notes_use
from services.scheduler.transactions.rows import AllocationRow
from services.scheduler.usage_days import UsageDays
from services.scheduler.webhooks.bus_webhooks import BusWebhooks
from services.scheduler.webhooks.sender import WebhookSender
from services.scheduler.workqueue.loops import run_periodically
from services.scheduler.workqueue.notifications import notification_of
from services.scheduler.workqueue.own_news import OwnNews
from services.scheduler.workqueue.result import ReconcileResult
from services.scheduler.workqueue.resync import missed_requests
from services.scheduler.workqueue.work_queue import Request, WorkQueue

log = structlog.get_logger()

OBSERVATION_ACK_WAIT_S: Final = 3.0
SCHEDULERS: Final = "schedulers"
"""Queue group: while a scheduler takes over from another, one of them answers."""
RECONCILE_TIMEOUT_S: Final = 2.0


class SchedulerController:
    """Everything that only one scheduler does at a time; each part is nevertheless correct if two do."""

    def __init__(
        self, *, db: Database, bus: Bus, clock: Clock, cluster: ClusterConfig, settings: SchedulerSettings
    ) -> None:
        self._db = db
        self._bus = bus
        self._clock = clock
        self._settings = settings
        self._capacity = CapacityView(changed=self._capacity_changed)
        log_wait = timedelta(seconds=settings.engine.log_wait_s)
        self._experiments = ExperimentReconciler(
            db=db,
            clock=clock,
            cluster=cluster,
            capacity=self._capacity.of,
            log_wait=log_wait,
        )
        self._experiment_deletion = ExperimentDeletion(db=db, clock=clock, cluster=cluster, log_wait=log_wait)
        self._closed_nodes = ClosedNodes()
        self._capacity_news = CapacityNews()
        self._allocations = AllocationReconciler(
            db=db,
            clock=clock,
            ended=self._allocation_ended,
            plan_binds=not cluster.resource_manager.binds_by_itself,
            observing=self._closed_nodes.note,
            held_changed=self._plan,
        )
        self._clearing = MaintenanceClearing(
            db=db,
            clock=clock,
            allocations=self._allocations,
            plan_binds=not cluster.resource_manager.binds_by_itself,
        )
        self._overdue = OverdueAllocations(db=db, clock=clock, allocations=self._allocations)
        self._tasks = TaskEnding(db=db, clock=clock)
        self._idle_tasks = IdleEnding(
            db=db,
            clock=clock,
            allocations=self._allocations,
            use_is_noted=lambda: api_notes_use(bus),
            grace_s=settings.engine.idle_grace_s,
        )
        self._lost_trials = LostTrials(db=db, clock=clock, reports_are_heard=lambda: api_notes_use(bus))
        self._absent_polls = AbsentPolls(db=db, clock=clock, polls_are_heard=lambda: api_notes_use(bus))
        self._generic_tasks = GenericTasks(db=db, clock=clock)
        folders = WorkspaceDeletion(db=db, allocations=self._allocations)
        self._removals: Mapping[str, Callable[[int], Awaitable[float | None]]] = {
            "deleted trial": TrialDeletion(db=db, clock=clock, log_wait=log_wait).reconcile,
            "project": folders.advance_project,
            "workspace": folders.advance_workspace,
            "namespaces": NamespaceDeletion(db=db, bus=bus, clock=clock, cluster=cluster).advance,
        }
        self._missed_observations = MissedObservations(db=db, bus=bus, settings=settings.engine)
        self._work_queue = WorkQueue(self._reconcile)
        self._own_news = OwnNews()
        self._resync_now = asyncio.Event()
        self._is_new = True
        """No round of the resync has looked at everything yet."""
        self._order_keys = OrderKeys(listed=self._resync_now.set)
        self._repair = OrderRepair(
            db=db, bus=bus, clock=clock, cluster=cluster, keys=self._order_keys, capacity=self._capacity.of
        )
        self._housekeeping = Housekeeping(
            db=db,
            bus=bus,
            clock=clock,
            sessions_kept_s=settings.engine.sessions_kept_s,
            audit_kept_days=settings.engine.audit_kept_days,
        )
        self._webhook_sender = WebhookSender(db=db, clock=clock, config=cluster.webhooks, settings=settings.webhooks)
        self._bus_webhooks = BusWebhooks(db=db, bus=bus, settings=settings.webhooks, news=self._webhook_sender.look_now)
        self._usage_days = UsageDays(db=db, clock=clock)
        self._row_counts = RowCounts(db=db)
        self._wait_lines = WaitLines(db=db, clock=clock)
        past = PastRunsCache(otherwise=timedelta(seconds=settings.forecast.default_run_s))
        self._forecaster = Forecaster(
            db=db, clock=clock, cluster=cluster, capacity=self._capacity.of, settings=settings.forecast, past=past
        )
        self._queue_checks = QueueChecks(
            db=db, clock=clock, cluster=cluster, capacity=self._capacity.of, settings=settings.forecast, past=past
        )
        self._queues = {
            pool.pool_name: PoolQueue(
                db=db,
                clock=clock,
                cluster=cluster,
                pool=pool,
                capacity=self._capacity_now,
                ended=self._allocation_ended,
                settings=settings.queue,
                past_runs=lambda: past.known,
                capacities=self._capacity.all,
                wake=self._plan,
            )
            for pool in cluster.resource_pools
        }

    async def run(self) -> None:
        """Act until cancelled."""
        async with (
            self._bus.subscribe(subjects.ALL_EVENTS, self._on_event, on_gap=self._resync_now.set),
            self._bus.serve(subjects.RECONCILE, self._reconcile_now, queue=SCHEDULERS),
            self._bus.serve(subjects.CHECK_QUEUE, self._queue_checks.on_question, queue=SCHEDULERS),
        ):
            await run_until_first_exits(
                work_queue=self._work_queue.run(),
                capacity=self._capacity.follow(self._bus),
                resync=run_periodically(
                    "resync", self._resync, every_s=self._settings.engine.resync_s, wake=self._resync_now
                ),
                observations=self._observe(),
                missed_observations=self._missed_observations.run(),
                order_keys=self._order_keys.follow(self._bus),
                housekeeping=self._housekeeping.run(),
                usage_days=self._usage_days.run(),
                row_counts=self._row_counts.run(),
                wait_lines=self._wait_lines.run(),
                forecast=self._forecaster.run(),
                idle_tasks=self._idle_tasks.run(),
                lost_trials=self._lost_trials.run(),
                maintenance=self._clearing.run(),
                time_limits=self._overdue.run(),
                absent_polls=self._absent_polls.run(),
                bus_webhooks=self._bus_webhooks.run(),
                webhook_sender=self._webhook_sender.run(),
                **{f"queue {name}": queue.run() for name, queue in self._queues.items()},
            )

    async def _observe(self) -> None:
        await self._bus.consume(
            stream=subjects.EVENTS_STREAM,
            durable=subjects.OBSERVER,
            filter=subjects.observed_by(),
            handler=self._allocations.on_observation,
            concurrency=self._settings.engine.observers,
            # What a killed scheduler had in hand comes again after this; handlers take milliseconds.
            ack_wait_s=OBSERVATION_ACK_WAIT_S,
            on_gap=self._missed_observations.on_gap,
        )

    async def _on_event(self, message: CoreMessage) -> None:
        number = number_of(message.headers.get(MSG_ID, ""))
        notification = self._own_news.without(notification_of(message.subject, message.data), number)
        for request in notification.requests:
            self._work_queue.enqueue(request)
        if notification.pool is not None:
            self._plan(notification.pool)

    async def _reconcile_now(self, message: CoreMessage) -> bytes:
        """Reconcile experiments, allocations and generic tasks for somebody who waits, but not for long."""
        asked = msgspec.json.decode(message.data, type=ReconcileRequest)
        tasks = (Request("generic task", ident) for ident in asked.generic_tasks)
        rounds = [
            *(self._reconcile_experiment(ident, asked.created_until) for ident in asked.experiments),
            *map(self._work_queue.enqueue_and_wait, tasks),
        ]
        try:
            async with asyncio.timeout(RECONCILE_TIMEOUT_S):
                await asyncio.gather(*rounds, *map(self._reconcile_allocation, asked.allocations))
        except TimeoutError as error:
            raise Unavailable("the scheduler is busy") from error
        return b""

    async def _reconcile_experiment(self, experiment: int, created_until: int) -> None:
        request = Request("experiment", experiment)
        if created_until and self._own_news.created(experiment, created_until):
            await self._work_queue.wait(request)
        else:
            await self._work_queue.enqueue_and_wait(request)

    async def _reconcile_allocation(self, allocation: str) -> None:
        """Have done what is asked of it and then, in case that has ended it, have its task react."""
        await self._work_queue.enqueue_and_wait(Request("termination", allocation))
        await self._work_queue.enqueue_and_wait(Request("allocation", allocation))

    def _capacity_now(self, pool: str) -> PoolCapacity | None:
        capacity = self._capacity.of(pool)
        return None if capacity is None else self._closed_nodes.without_closed(capacity)

    def _capacity_changed(self, pool: str) -> None:
        is_news = self._capacity_news.is_news(pool, self._capacity.of(pool))
        # Nodes that are closed before a capacity says so are open again with the first one that does not.
        if is_news or self._closed_nodes.has_any(pool):
            self._plan(pool)

    def _plan(self, pool: str) -> None:
        """Have the queue of ``pool`` planned, and those that wait for limits of all pools, or all of them when it is
        not named."""
        for name, queue in self._queues.items():
            if not pool or name == pool or queue.waits_for_shared_limits:
                queue.notify()

    def _allocation_ended(self, row: AllocationRow) -> None:
        self._work_queue.enqueue(Request("allocation", row.allocation_id))
        self._plan(row.pool)

    async def _reconcile(self, request: Request) -> float | None:
        match request.kind, request.ident:
            case "experiment", int(ident):
                return self._plan_changed(await self._experiments.reconcile(ident))
            case "deletion", int(ident):
                return self._plan_changed(await self._experiment_deletion.reconcile(ident))
            case "allocation", str(allocation):
                await self._process_exit(allocation)
            case "termination", str(allocation):
                await self._allocations.follow_up(allocation)
            case "generic task", str(task):
                await self._generic_tasks.reconcile(task)
            case "nodes", _:
                await self._allocations.clear_disabled_nodes()
            case ("deleted trial" | "project" | "workspace" | "namespaces") as kind, int(ident):
                return await self._removals[kind](ident)
            case _:
                raise AssertionError(f"nobody reconciles {request}")
        return None

    def _plan_changed(self, result: ReconcileResult) -> float | None:
        self._own_news.requested(result.requested)
        for pool in result.pools:
            self._plan(pool)
        return result.requeue_after_s

    async def _process_exit(self, allocation: str) -> None:
        """An allocation is over: its task reacts, or the experiment whose trial it was."""
        async with self._db.read() as connection:
            owner = await owner_of(connection, allocation)
        if owner is None:
            return
        task_type, experiment = owner
        if task_type == "TRIAL" and experiment is not None:
            self._work_queue.enqueue(Request("experiment", experiment))
            return
        if task_type == GENERIC_TASK and (task := task_of_allocation(allocation)) is not None:
            self._work_queue.enqueue(Request("generic task", task))
            return
        await self._tasks.process_task_exit(allocation)
        if experiment is not None:
            self._work_queue.enqueue(Request("deletion", experiment))

    async def _resync(self) -> None:
        """Look for what nobody has said: at the start, after gaps in the events, and now and then."""
        for request in await missed_requests(self._db, self._clock, everything=self._is_new):
            self._work_queue.enqueue(request)
        self._is_new = False
        await self._allocations.follow_up_all()
        await self._allocations.clear_disabled_nodes()
        await self._repair.repair()
