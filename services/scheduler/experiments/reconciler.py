"""The experiment engine: makes everything below an experiment what its row and its search say it should be.

``reconcile`` may be called for any experiment at any time, any number of times, by any number of schedulers: it takes
the lock of the experiment's row, looks at what there is, and does in one transaction what is missing. Events merely say
when looking is worthwhile. Source: docs/reference/experiments.md 3 to 6.
"""

from __future__ import annotations

from datetime import timedelta

import structlog

from libs.clock import Clock
from libs.cluster.config import ClusterConfig
from libs.db.engine import Connection, Database
from libs.db.transactions import in_transaction
from libs.searchers.actions import Create, Shutdown, Stop
from libs.ssh_keys import new_key_pair
from libs.states.experiment import LIVE, STOPPING, ExperimentState, Trigger, step
from libs.states.trial import TrialState
from services.scheduler.allocations.ended import clear_ended
from services.scheduler.deletion.checkpoint_gc import carry_out_requests
from services.scheduler.experiments import searcher_events
from services.scheduler.experiments.ending import end_experiment
from services.scheduler.experiments.search import Search, SearchFailedError
from services.scheduler.experiments.trial_creation import create_trials
from services.scheduler.experiments.trial_exits import settle_exits
from services.scheduler.experiments.trial_moves import (
    end_stopped,
    follow_experiment,
    move_allocations,
    stop_by_searcher,
)
from services.scheduler.transactions.experiment_log import say_in_log
from services.scheduler.transactions.locked_experiment import Capacity, Run, lock_run
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
        """``log_wait`` as in ``settle_exits``."""
        self._log_wait = log_wait
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
        run = await lock_run(
            connection, experiment_id, cluster=self._cluster, now=self._clock.now(), capacity=self._capacity
        )
        if run is None or run.state == ExperimentState.DELETING:
            return ReconcileResult()
        await carry_out_requests(run)
        if run.state in LIVE and not run.experiment.unmanaged:
            await run.load()
            await _carry_on(run, self._log_wait)
            if run.state in STOPPING and not run.live:
                await end_experiment(run)
        await run.write()
        await clear_ended(connection, run.out.events, now=run.now)
        return ReconcileResult(pools=frozenset(row.pool for row in run.requested), requeue_after_s=run.requeue_after_s)

    async def _fail(self, connection: Connection, experiment_id: int, reason: str) -> None:
        """The search cannot go on, so nothing of the experiment shall."""
        run = await lock_run(connection, experiment_id, cluster=self._cluster, now=self._clock.now())
        if run is None or (state := step(run.state, Trigger.FAIL)) is None:
            return
        run.experiment.state = state
        run.experiment.error = f"the search failed: {reason}"
        await say_in_log(connection, experiment_id, run.experiment.error, now=run.now, out=run.out)
        await searcher_events.forget(run)
        await run.write()


async def _carry_on(run: Run, log_wait: timedelta) -> None:
    """Let trials follow, exits be reacted to and the search be heard, until each has nothing more to say to the others.

    It ends, because every round but the last ends a trial or an allocation, or creates the trials of a finite search.
    """
    search = await _open_search(run)
    while True:
        follow_experiment(run)
        await settle_exits(run, log_wait=log_wait)
        end_stopped(run)
        if search is not None and run.state not in STOPPING:
            _tell_ended(run, search)
            if search.todo:
                await _carry_out(run, search)
                continue
        run.ended.clear()
        if not move_allocations(run):
            break
    if run.state in STOPPING:
        await searcher_events.forget(run)
    elif search is not None:
        await searcher_events.store(run, search)


async def _open_search(run: Run) -> Search | None:
    """The search, told what has happened; None when it does not matter to it any more."""
    if run.state in STOPPING:
        return None
    if not run.experiment.ssh_private_key:
        run.experiment.ssh_private_key, run.experiment.ssh_public_key = new_key_pair(run.cluster.security.ssh)
    search = await searcher_events.open_search(run)
    await searcher_events.hear(run, search)
    return search


def _tell_ended(run: Run, search: Search) -> None:
    for trial in run.ended:
        if trial.request_id is not None:
            search.ended(trial.request_id, TrialState(trial.state))
    run.ended.clear()


async def _carry_out(run: Run, search: Search) -> None:
    """Do what the search has asked for so far; trials that it wants one after another are created together."""
    creates: list[Create] = []
    actions = list(search.todo)
    search.todo.clear()
    for action in actions:
        match action:
            case Create():
                creates.append(action)
            case Stop():
                await create_trials(run, search, creates)
                creates = []
                stop_by_searcher(run, action.request_id)
            case Shutdown():
                _shut_down(run, action)
    await create_trials(run, search, creates)


def _shut_down(run: Run, action: Shutdown) -> None:
    trigger = Trigger.SEARCH_COMPLETED
    if action.failure:
        trigger = Trigger.FAIL
        run.experiment.error = run.experiment.error or action.reason or run.failure or "hp search failed"
    elif action.cancel:
        trigger = Trigger.SEARCH_CANCELED
    run.experiment.state = step(run.state, trigger) or run.state
