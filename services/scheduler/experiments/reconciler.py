"""Reconciles an experiment: makes everything below it what its row and its search say it should be.

``reconcile`` may be called for any experiment at any time, any number of times, by any number of schedulers: it takes
the lock of the experiment's row, looks at what there is, and does in one transaction what is missing. Events merely say
when looking is worthwhile. Source: docs/reference/experiments.md 3 to 6.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

import structlog

from libs.clock import Clock
from libs.cluster.config import ClusterConfig
from libs.db.engine import Connection, Database
from libs.db.transactions import in_transaction
from libs.searchers.actions import Create, Shutdown, Stop
from libs.ssh_keys import new_key_pair
from libs.states.experiment import LIVE, STOPPING, ExperimentState, Trigger, step
from libs.states.trial import TrialState
from libs.tracing import Span
from services.scheduler.allocations.ended import clear_ended
from services.scheduler.deletion.checkpoint_gc import carry_out_requests
from services.scheduler.experiments import searcher_events
from services.scheduler.experiments.ending import end_experiment
from services.scheduler.experiments.reconcile_span import reconcile_span
from services.scheduler.experiments.search import Search, SearchFailedError
from services.scheduler.experiments.trial_creation import create_trials
from services.scheduler.experiments.trial_exits import process_exits
from services.scheduler.experiments.trial_moves import (
    end_stopped,
    follow_experiment,
    move_allocations,
    stop_by_searcher,
)
from services.scheduler.transactions.experiment_log import say_in_log
from services.scheduler.transactions.locked_experiment import Capacity, LockedExperiment, lock_experiment
from services.scheduler.workqueue.result import ReconcileResult

log = structlog.get_logger()


class ExperimentReconciler:
    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        cluster: ClusterConfig,
        capacity: Capacity = lambda _pool: None,
        log_wait: timedelta = timedelta(),
    ) -> None:
        """``log_wait`` as in ``process_exits``."""
        self._process_exits = partial(
            process_exits,
            log_wait=log_wait,
            outage_wait=lambda pool: timedelta(seconds=cluster.log_outage_wait_s(pool)),
        )
        self._db = db
        self._clock = clock
        self._cluster = cluster
        self._capacity = capacity

    async def reconcile(self, experiment_id: int) -> ReconcileResult:
        """Make the experiment what it should be by now.

        To one that is over nothing happens but the deletion of files that somebody has asked for.
        """
        try:
            return await in_transaction(self._db, lambda connection: self._reconcile(connection, experiment_id))
        except SearchFailedError as error:
            log.warning("search.failed", experiment=experiment_id, error=str(error))
            reason = str(error)
        await in_transaction(self._db, lambda connection: self._fail(connection, experiment_id, reason))
        return await in_transaction(self._db, lambda connection: self._reconcile(connection, experiment_id))

    async def _reconcile(self, connection: Connection, experiment_id: int) -> ReconcileResult:
        async with reconcile_span(connection, experiment_id) as traced:
            return await self._reconcile_traced(connection, experiment_id, traced)

    async def _reconcile_traced(self, connection: Connection, experiment_id: int, traced: Span) -> ReconcileResult:
        locked = await lock_experiment(
            connection, experiment_id, cluster=self._cluster, now=self._clock.now(), capacity=self._capacity
        )
        if locked is None or locked.state == ExperimentState.DELETING:
            traced.drop()
            return ReconcileResult()
        if locked.state in LIVE and not locked.experiment.unmanaged:
            await locked.load()
            waiting = await searcher_events.look(locked, searches=locked.state not in STOPPING)
            if waiting.has_gc_requests:
                await carry_out_requests(locked)
            await _carry_on(locked, waiting, self._process_exits)
            if locked.state in STOPPING and not locked.live:
                await end_experiment(locked)
        else:
            await carry_out_requests(locked)
        await locked.write()
        await clear_ended(connection, locked.out.events, now=locked.now)
        if not locked.out.events:
            traced.drop()  # most looks find nothing to do
        return ReconcileResult(
            pools=frozenset(row.pool for row in locked.requested),
            requested=tuple(row.allocation_id for row in locked.requested),
            requeue_after_s=locked.requeue_after_s,
        )

    async def _fail(self, connection: Connection, experiment_id: int, reason: str) -> None:
        """The search cannot go on, so nothing of the experiment shall."""
        locked = await lock_experiment(connection, experiment_id, cluster=self._cluster, now=self._clock.now())
        if locked is None or (state := step(locked.state, Trigger.FAIL)) is None:
            return
        locked.experiment.state = state
        locked.experiment.error = f"the search failed: {reason}"
        await say_in_log(connection, experiment_id, locked.experiment.error, now=locked.now, out=locked.out)
        await searcher_events.discard(locked)
        await locked.write()


async def _carry_on(
    locked: LockedExperiment,
    waiting: searcher_events.PendingWork,
    react_to_exits: Callable[[LockedExperiment], Awaitable[None]],
) -> None:
    """Let trials follow, exits be reacted to and the search be heard, until each has nothing more to say to the others.

    It ends, because every round but the last ends a trial or an allocation, or creates the trials of a finite search.
    """
    search = await _open_search(locked, waiting)
    while True:
        follow_experiment(locked)
        await react_to_exits(locked)
        end_stopped(locked)
        if search is not None and locked.state not in STOPPING:
            _tell_ended(locked, search)
            if search.todo:
                await _carry_out(locked, search)
                continue
        locked.ended.clear()
        if not move_allocations(locked):
            break
    if locked.state in STOPPING:
        await searcher_events.discard(locked)
    elif search is not None:
        await searcher_events.store(locked, search)


async def _open_search(locked: LockedExperiment, waiting: searcher_events.PendingWork) -> Search | None:
    """The search, told what has happened; None when it does not matter to it any more."""
    if locked.state in STOPPING:
        return None
    if not locked.experiment.ssh_private_key:
        locked.experiment.ssh_private_key, locked.experiment.ssh_public_key = new_key_pair(locked.cluster.security.ssh)
    search = searcher_events.open_search(locked, waiting)
    if waiting.has_events:
        await searcher_events.deliver(locked, search)
    return search


def _tell_ended(locked: LockedExperiment, search: Search) -> None:
    for trial in locked.ended:
        if trial.request_id is not None:
            search.ended(trial.request_id, TrialState(trial.state))
    locked.ended.clear()


async def _carry_out(locked: LockedExperiment, search: Search) -> None:
    """Do what the search has asked for so far; trials that it wants one after another are created together."""
    creates: list[Create] = []
    actions = list(search.todo)
    search.todo.clear()
    for action in actions:
        match action:
            case Create():
                creates.append(action)
            case Stop():
                await create_trials(locked, search, creates)
                creates = []
                stop_by_searcher(locked, action.request_id)
            case Shutdown():
                _shut_down(locked, action)
    await create_trials(locked, search, creates)


def _shut_down(locked: LockedExperiment, action: Shutdown) -> None:
    trigger = Trigger.SEARCH_COMPLETED
    if action.failure:
        trigger = Trigger.FAIL
        locked.experiment.error = locked.experiment.error or action.reason or locked.failure or "hp search failed"
    elif action.cancel:
        trigger = Trigger.SEARCH_CANCELED
    locked.experiment.state = step(locked.state, trigger) or locked.state
