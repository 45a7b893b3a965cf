"""Moves trials with their experiment: they get allocations, and let go of them. Pure, but for the rows in memory.

Source: docs/reference/experiments.md 5.1 and 5.2 (effects of entered states).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import structlog

from libs.cluster.fallbacks import names_of
from libs.cluster.resolution import PodSplit, could_fit, resolve_pool, split_slots
from libs.config.defaults import EXPERIMENT
from libs.config.stored import count_in, part, text_in
from libs.config.task_container_defaults import PREEMPTION_TIMEOUT_S
from libs.errors import InvalidRequest
from libs.events.changes import TrialChanged
from libs.ids import allocation_id
from libs.states.trial import END_OF_STOPPING, STOPPING, WANTED, TrialState, asked_for
from libs.tasks.users_pods import from_column, lines_at_first_start
from services.scheduler.allocations.termination import follow_up, is_over, kill, terminate
from services.scheduler.allocations.time_limits import has_used_up, ran_s, reached
from services.scheduler.experiments.trial_backoff import count_end
from services.scheduler.experiments.trial_reactions import Next, Reaction
from services.scheduler.transactions.allocation_messages import changed, note
from services.scheduler.transactions.locked_experiment import LockedExperiment
from services.scheduler.transactions.rows import AllocationRow, TrialRow

log = structlog.get_logger()

EXCEEDS: Final = "slots requested exceeds cluster capacity without the nodes that log policies exclude"
_CAPACITY_LOOK_S: Final = 1.0

_LEAVING: Final = {
    TrialState.PAUSED: "user requested pause",
    TrialState.STOPPING_COMPLETED: "stopped by the search",
    TrialState.STOPPING_CANCELED: "user requested cancel",
}
_KILLED: Final = {
    TrialState.STOPPING_KILLED: "user requested kill",
    TrialState.STOPPING_ERROR: "the experiment has failed",
}


def follow_experiment(locked: LockedExperiment) -> None:
    """Every trial that is not over wants what its experiment wants, unless it is stopping more urgently."""
    for trial in locked.live:
        trial.state = asked_for(TrialState(trial.state), WANTED[locked.state])
        if trial.early_exit_deadline is not None and trial.early_exit_deadline <= locked.now:
            trial.state = asked_for(TrialState(trial.state), TrialState.STOPPING_KILLED)
            trial.early_exit_deadline = None


def apply_reaction(locked: LockedExperiment, trial: TrialRow, reaction: Reaction) -> None:
    """The trial has reacted to the end of its allocation."""
    row = locked.open_allocation(trial)
    assert row is not None, "there was one that ended"
    pause = count_end(trial, row, now=locked.now)
    if pause is not None and reaction.next == Next.RUN_AGAIN:
        text = f"the next attempt begins in {pause.total_seconds():g}s at the earliest: this one was cut off"
        note(row, text, now=locked.now, out=locked.out)
    locked.mark_exit_processed(trial)
    if row.time_limit_s is not None:
        trial.ran_s = ran_s(row)
    if reaction.counts_as_restart:
        trial.restarts += 1
    if reaction.next == Next.END:
        assert reaction.state is not None
        locked.end_trial(trial, reaction.state, reaction.error or _time_is_up(locked, trial, row, reaction))
        if reaction.state == TrialState.ERROR:
            locked.failure = locked.failure or _failure(trial, row, reaction)
    elif reaction.counts_as_restart:
        locked.out.announce(
            TrialChanged(
                trial_id=trial.id,
                experiment_id=trial.experiment_id,
                what="restarted",
                state=trial.state,
                task_id=locked.task_of(trial),
                restarts=trial.restarts,
            )
        )


def _time_is_up(locked: LockedExperiment, trial: TrialRow, row: AllocationRow, reaction: Reaction) -> str | None:
    """Why a trial has ended whose time was up before it was done; an experiment of one trial has the same reason."""
    if reaction.state != TrialState.COMPLETED or row.stopped_early or not has_used_up(row):
        return None
    if text_in(part(locked.experiment.config, "searcher"), "name") == "single":
        locked.experiment.error = locked.experiment.error or f"trial {trial.id} {reached(row)}"
    return reached(row)


def _failure(trial: TrialRow, row: AllocationRow, reaction: Reaction) -> str:
    """Why a trial has failed: what was decided about it, and how its last attempt ended."""
    return ": ".join(part for part in (f"trial {trial.id}", reaction.error, row.exit_reason) if part)


def end_stopped(locked: LockedExperiment) -> None:
    """Stopping trials without an allocation are over."""
    for trial in locked.live:
        if trial.state in STOPPING and locked.open_allocation(trial) is None:
            locked.end_trial(trial, END_OF_STOPPING[TrialState(trial.state)])


def stop_by_searcher(locked: LockedExperiment, request_id: str) -> None:
    """The search wants a trial to end early; one that is over stays as it is."""
    trial = next((row for row in locked.live if row.request_id == request_id), None)
    if trial is not None:
        trial.stopped_by_searcher = True
        trial.state = asked_for(TrialState(trial.state), TrialState.STOPPING_COMPLETED)


def move_allocations(locked: LockedExperiment) -> bool:
    """Active trials get an allocation, the others let go of theirs; True when something has ended on the way."""
    something_ended = False
    for trial in locked.live:
        row = locked.open_allocation(trial)
        if row is None:
            if trial.state == TrialState.ACTIVE:
                _request(locked, trial)
                something_ended |= trial.end_time is not None
        elif not is_over(row):
            _release(locked, trial, row)
            something_ended |= is_over(row)
        _note_deadlines(locked, trial)
    return something_ended


def _note_deadlines(locked: LockedExperiment, trial: TrialRow) -> None:
    """See to it that somebody looks when the time of the trial, or of its allocation, is up."""
    row = locked.open_allocation(trial)
    due = [trial.early_exit_deadline]
    if row is not None and row.killed_at is None and not is_over(row):
        due.append(row.preempt_deadline)
    for moment in due:
        if moment is not None:
            locked.requeue(after_s=max((moment - locked.now).total_seconds(), 0.0))


def _release(locked: LockedExperiment, trial: TrialRow, row: AllocationRow) -> None:
    state = TrialState(trial.state)
    follow_up(row, now=locked.now, out=locked.out)
    if state in _KILLED:
        kill(row, reason=_KILLED[state], now=locked.now, out=locked.out)
    elif state in _LEAVING:
        terminate(row, reason=_LEAVING[state], now=locked.now, out=locked.out)
    elif row.pool not in _wanted_pools(locked, row):
        terminate(row, reason="allocation resource pool changed", now=locked.now, out=locked.out)
    elif row.priority is not None and row.priority != (
        priority := count_in(part(locked.experiment.config, "resources"), "priority")
    ):
        # Its pods keep theirs for life, which is no reason to end them (docs/reference/scheduling.md 16, B14).
        row.priority = priority


def _wanted_pools(locked: LockedExperiment, row: AllocationRow) -> set[str]:
    """Where ``row`` may be: it waits in its own pool alone, and runs there or where it has started instead."""
    resources = part(locked.experiment.config, "resources")
    instead = names_of(resources) if row.assigned_at is not None else ()
    return {text_in(resources, "resource_pool") or _resolved_pool(locked), *instead}


def _resolved_pool(locked: LockedExperiment) -> str:
    resources = part(locked.experiment.config, "resources")
    return resolve_pool(locked.cluster, name=text_in(resources, "resource_pool"), slots=_slots(resources))


def _slots(resources: Mapping[str, Any]) -> int:
    slots = count_in(resources, "slots_per_trial")
    return int(EXPERIMENT["resources"]["slots_per_trial"]) if slots is None else slots


def _fits_elsewhere(locked: LockedExperiment, trial: TrialRow, pool: str, split: PodSplit) -> bool | None:
    """Whether the nodes that log policies leave the trial are enough for it; None when nobody has said what there is.

    A pool that may grow is waited for, and so is everything where launching more than there is is no error.
    Source: docs/reference/scheduling.md 3 and 4.6; docs/reference/logs.md 7.3.
    """
    if not trial.blocked_nodes or locked.cluster.can_grow(pool) or not locked.cluster.launch_error:
        return True
    capacity = locked.capacity(pool)
    return None if capacity is None else could_fit(split, capacity.nodes, excluded=trial.blocked_nodes)


def _preemption_timeout_s(config: Mapping[str, Any]) -> int:
    """0 leaves no time at all; it does not mean the default."""
    timeout = count_in(config, "preemption_timeout")
    return PREEMPTION_TIMEOUT_S if timeout is None else timeout


def _request(locked: LockedExperiment, trial: TrialRow) -> None:
    """Give it an allocation that waits for its slots. A trial that can never have them is over."""
    if trial.not_before is not None and trial.not_before > locked.now:
        locked.requeue(after_s=(trial.not_before - locked.now).total_seconds())
        return
    config = locked.experiment.config
    resources = part(config, "resources")
    slots = _slots(resources)
    try:
        pool = _resolved_pool(locked)
        single = bool(resources.get("is_single_node"))
        most = locked.cluster.max_slots_per_pod(pool)
        # What was accepted goes on: where pods are alike now, it is divided all the same, or waits until it can be.
        has_to_differ = bool(most and slots % most) and locked.cluster.pods_may_differ
        divides = has_to_differ or locked.cluster.divides_slots(pool)
        split = split_slots(slots, most, single_pod=single, divides=divides)
    except InvalidRequest as error:
        log.warning("trial.unfulfillable", trial=trial.id, error=str(error))
        locked.end_trial(trial, TrialState.ERROR, str(error))
        return
    fits = _fits_elsewhere(locked, trial, pool, split)
    if fits is None:
        locked.requeue(after_s=_CAPACITY_LOOK_S)
        return
    if not fits:
        log.warning("trial.unfulfillable", trial=trial.id, blocked_nodes=trial.blocked_nodes)
        locked.end_trial(trial, TrialState.ERROR, f"{EXCEEDS}: {', '.join(trial.blocked_nodes)}")
        return
    trial.run_id += 1
    task = locked.task_of(trial)
    row = AllocationRow(
        allocation_id=allocation_id(task, trial.run_id),
        task_id=task,
        job_id=locked.experiment.job_id,
        name=f"Trial {trial.id} (Experiment {trial.experiment_id})",
        pool=pool,
        slots=slots,
        num_pods=split.num_pods,
        preemptible=True,
        preemption_timeout_s=_preemption_timeout_s(config),
        state="PENDING",
        requested_at=locked.now,
        blocked_nodes=list(trial.blocked_nodes),
        time_limit_s=count_in(resources, "time_limit"),
        ran_before_s=trial.ran_s,
    )
    locked.opened(trial, row)
    note(row, f"Scheduling {row.name} (id: {row.allocation_id})", now=locked.now, out=locked.out)
    if trial.run_id == 1:
        for text in lines_at_first_start(from_column(locked.experiment.users_pod)):
            note(row, text, now=locked.now, out=locked.out, level="WARNING")
    locked.out.announce(changed(row, "requested"))
