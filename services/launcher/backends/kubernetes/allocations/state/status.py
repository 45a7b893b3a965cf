"""The status of an allocation: whether it exists, what has to be done now, and why each of its pods has ended.

Worked out from what was observed and what is intended, once per change; the observation, the existence that the loop
compares with orders, and the reactions all read it, so that they cannot disagree. The first row of ``TABLE`` that
applies decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from services.launcher.backends.kubernetes.allocations.state.intent import Intent
from services.launcher.backends.kubernetes.allocations.state.observed_state import OVERDUE_S, UNSEEN_S, ObservedState
from services.launcher.backends.kubernetes.allocations.state.placing import placed_by, unplaced
from services.launcher.backends.kubernetes.allocations.state.pods import Cause, is_over
from services.launcher.backends.kubernetes.allocations.state.view import View
from services.launcher.backends.kubernetes.client.objects import Condition, Job, Pod
from services.launcher.backends.kubernetes.client.times import unix_s
from services.launcher.reconcile import Existence


class NextAction(Enum):
    """What to do about an allocation now, which nobody has ordered."""

    END_REST = "end rest"
    """End what is left of it, and write down why: ``Intent.outcome``."""
    LIST_PODS = "list pods"
    """List its pods: the Job makes no more, and the watch may be behind."""
    DELETE_PODS = "delete pods"
    """Delete pods that are there although the rest of it was ended: ``pods_to_delete``."""
    STOP = "stop"
    """Carry out a stop that was asked for."""


class AllocationPhase(Enum):
    """Which row of the table applies."""

    REFUSED = "refused"
    OUT_OF_SIGHT = "out of sight"
    ABANDONED = "abandoned"
    CREATING = "creating"
    STOP_REQUESTED = "stop requested"
    STOPPING = "stopping"
    JOB_GONE = "job gone"
    END_DECIDED = "end decided"
    DELETING_PODS = "deleting pods"
    ENDING_UNLISTED = "ending, pods not listed"
    ENDING = "ending"
    PODS_REFUSED = "pods refused"
    JOB_LOST = "one of its jobs lost"
    FINISHED_UNLISTED = "finished, pods not listed"
    FINISHED = "finished"
    JOB_FAILED_UNLISTED = "one of its jobs failed, pods not listed"
    FAILED = "failed"
    RUNNING = "running"


class Facts(Struct, frozen=True, kw_only=True):
    """What the table asks about."""

    is_refused: bool
    is_out_of_sight: bool
    is_abandoned: bool
    is_created: bool
    is_stopping: bool
    is_stop_sent: bool
    has_job: bool
    is_job_finished: bool
    has_outcome: bool
    is_outcome_saved: bool
    has_pods_to_delete: bool
    is_job_told: bool
    """The watch has shown that the Job is to have no pods. Whoever deletes one before its controller has read that gets
    another in its place."""
    has_lost_job: bool
    """One of several Jobs was deleted before it had finished, and others are there."""
    has_failed_job: bool
    """One of several Jobs has failed."""
    makes_no_pods: bool
    """The Job controller is done."""
    are_pods_listed: bool
    are_pods_refused: bool
    has_live_pods: bool
    has_enough_pods: bool
    """As many as there should be are there, or were."""
    has_failure: bool
    """A pod has ended badly, or is bound to."""
    has_forgotten_failure: bool
    """One of them is gone."""

    @property
    def is_complete(self) -> bool:
        """As many pods have ended as there should be, and none lives."""
        return self.has_enough_pods and not self.has_live_pods

    @property
    def is_over(self) -> bool:
        """Nothing of it lives, or will."""
        if self.has_live_pods:
            return False
        if self.is_stopping or not self.has_job:
            return not self.has_job
        is_complete = not self.has_outcome and self.has_enough_pods
        return is_complete or (self.makes_no_pods and self.are_pods_listed)


class Row(Struct, frozen=True):
    phase: AllocationPhase
    applies: Callable[[Facts], bool]
    reaction: NextAction | None = None
    existence: Existence | None = None
    """None: whether it is over decides."""


TABLE: Final = (
    Row(AllocationPhase.REFUSED, lambda it: it.is_refused, existence=Existence.ENDED),
    Row(AllocationPhase.OUT_OF_SIGHT, lambda it: it.is_out_of_sight, existence=Existence.LIVE),
    Row(AllocationPhase.ABANDONED, lambda it: it.is_abandoned, existence=Existence.ABANDONED),
    Row(AllocationPhase.CREATING, lambda it: not it.is_created, existence=Existence.LIVE),
    Row(AllocationPhase.STOP_REQUESTED, lambda it: it.is_stopping and not it.is_stop_sent, NextAction.STOP),
    Row(AllocationPhase.STOPPING, lambda it: it.is_stopping),
    Row(AllocationPhase.JOB_GONE, lambda it: not it.has_job),
    Row(AllocationPhase.END_DECIDED, lambda it: it.has_outcome and not it.is_outcome_saved, NextAction.END_REST),
    Row(
        AllocationPhase.DELETING_PODS,
        lambda it: it.has_outcome and it.is_job_told and it.has_pods_to_delete,
        NextAction.DELETE_PODS,
    ),
    Row(
        AllocationPhase.ENDING_UNLISTED,
        lambda it: it.has_outcome and it.makes_no_pods and not it.are_pods_listed,
        NextAction.LIST_PODS,
    ),
    Row(AllocationPhase.ENDING, lambda it: it.has_outcome),
    Row(AllocationPhase.PODS_REFUSED, lambda it: it.are_pods_refused, NextAction.END_REST),
    Row(AllocationPhase.JOB_LOST, lambda it: it.has_lost_job and not it.is_complete, NextAction.END_REST),
    Row(
        AllocationPhase.FINISHED_UNLISTED,
        lambda it: it.is_job_finished and not it.are_pods_listed and not it.is_complete,
        NextAction.LIST_PODS,
    ),
    Row(AllocationPhase.FINISHED, lambda it: it.is_job_finished),
    Row(
        AllocationPhase.JOB_FAILED_UNLISTED,
        lambda it: it.has_failed_job and not it.has_failure and not it.are_pods_listed and not it.is_complete,
        NextAction.LIST_PODS,
    ),
    # The failure of a pod that is gone has to be written down even when nothing is left to be ended; and old clusters
    # would put another pod in its place.
    Row(
        AllocationPhase.FAILED,
        lambda it: (it.has_failure or it.has_failed_job) and (it.has_forgotten_failure or not it.is_complete),
        NextAction.END_REST,
    ),
    Row(AllocationPhase.RUNNING, lambda _: True),
)


class Decision(Struct, frozen=True):
    """What the table says."""

    phase: AllocationPhase
    existence: Existence
    reaction: NextAction | None


class AllocationStatus(Struct, frozen=True, kw_only=True):
    phase: AllocationPhase
    existence: Existence
    reaction: NextAction | None
    causes: Mapping[str, Cause | None]
    """Why pods have ended that are still there, by name; None for those that live."""
    unplaced: str
    """Of a gang that does not become whole: what to say of it."""
    next_change: float | None
    """When time alone will change something (Unix time, seconds)."""


def status(observed: ObservedState, intent: Intent, view: View) -> AllocationStatus:
    causes = {name: observed.cause_of(pod, intent=intent, view=view) for name, pod in observed.pods.items()}
    decision = decide(facts_of(observed, intent, causes, view))
    return AllocationStatus(
        phase=decision.phase,
        existence=decision.existence,
        reaction=decision.reaction,
        causes=causes,
        unplaced=unplaced(observed, intent, view),
        next_change=_next_change(observed, intent, view),
    )


def decide(facts: Facts) -> Decision:
    row = next(row for row in TABLE if row.applies(facts))
    over = Existence.ENDED if facts.is_over else Existence.LIVE
    return Decision(row.phase, row.existence or over, row.reaction)


def facts_of(observed: ObservedState, intent: Intent, causes: Mapping[str, Cause | None], view: View) -> Facts:
    finished = finished_condition(observed) is not None
    jobs = observed.jobs.values()
    jobs_are_idle = bool(jobs) and all(job.status.active == 0 for job in jobs)
    forgotten = any(pod.failure for pod in observed.ended.values())
    return Facts(
        is_refused=intent.refusal is not None,
        is_out_of_sight=bool(observed.out_of_sight),
        is_abandoned=intent.is_abandoned,
        is_created=intent.stage == "created",
        is_stopping=intent.stop is not None,
        is_stop_sent=intent.is_stop_sent,
        has_job=observed.job is not None,
        is_job_finished=finished,
        has_outcome=intent.outcome is not None,
        is_outcome_saved=intent.is_outcome_saved,
        has_pods_to_delete=bool(intent.outcome is not None and pods_to_delete(observed, intent)),
        is_job_told=finished or (bool(jobs) and all(_needs_no_word(job) for job in jobs)),
        has_lost_job=bool(jobs) and any(job is None or end_of_job(job) is None for job in observed.lost_jobs.values()),
        has_failed_job=bool(observed.job_names) and any(_has_failed(job) for job in jobs),
        # Before Kubernetes 1.23 the controller replaces a pod that is deleted, until it reads otherwise.
        makes_no_pods=finished or (intent.is_outcome_saved and jobs_are_idle),
        are_pods_listed=intent.are_pods_listed,
        are_pods_refused=_are_pods_refused(observed, view),
        has_live_pods=any(cause is None for cause in causes.values()),
        has_enough_pods=has_enough_pods(observed),
        has_failure=forgotten or any(cause.failure for cause in expected_causes(observed, causes).values()),
        has_forgotten_failure=forgotten,
    )


def expected_causes(observed: ObservedState, causes: Mapping[str, Cause | None]) -> dict[str, Cause]:
    """Why pods have ended, or will, by name; without those of which that is not known."""
    found = {name: observed.known_causes.get(name) or cause for name, cause in causes.items()}
    return {name: cause for name, cause in found.items() if cause is not None}


def finished_condition(observed: ObservedState) -> Condition | None:
    """The condition by which the Job says that it has finished; of several, when all have, that of one that failed."""
    if not observed.job_names:
        return end_of_job(observed.job) if observed.job is not None else None
    jobs = [observed.jobs.get(name) or observed.lost_jobs.get(name) for name in observed.job_names]
    ends = [end for job in jobs if job is not None and (end := end_of_job(job)) is not None]
    if not observed.jobs or len(ends) < len(jobs):
        return None
    return next((end for end in ends if end.type == "Failed"), ends[0])


def end_of_job(job: Job) -> Condition | None:
    """The condition by which it says that it has finished."""
    conditions = job.status.conditions
    return next((each for each in conditions if each.type in ("Complete", "Failed") and each.status == "True"), None)


def _has_failed(job: Job) -> bool:
    end = end_of_job(job)
    return end is not None and end.type == "Failed"


def _needs_no_word(job: Job) -> bool:
    """Whether it makes no more pods, as far as the watch has shown."""
    return job.spec.parallelism == 0 or end_of_job(job) is not None


def has_enough_pods(observed: ObservedState) -> bool:
    return len(observed.ended) + len(observed.pods) >= observed.num_pods


def pods_to_delete(observed: ObservedState, intent: Intent) -> list[Pod]:
    """Pods of which nobody has asked yet that they end.

    The Job controller does so when the Job is to have none; but not always with one that it makes in that moment.
    """
    return [
        pod
        for name, pod in observed.pods.items()
        if pod.metadata.deletion_timestamp is None and not is_over(pod) and name not in intent.delete_requested
    ]


def _are_pods_refused(observed: ObservedState, view: View) -> bool:
    failure = observed.create_failure
    return (
        failure is not None
        and not observed.quota_blocked
        and not observed.pods
        and view.now >= failure[1] + view.stuck_grace_s
    )


def _next_change(observed: ObservedState, intent: Intent, view: View) -> float | None:
    times = [
        since + view.stuck_grace_s for name, since in observed.troubles.items() if name not in observed.known_causes
    ]
    if observed.create_failure is not None and not observed.quota_blocked:
        times.append(observed.create_failure[1] + view.stuck_grace_s)
    if observed.out_of_sight and intent.stop is not None:
        times.append(intent.stop.deadline + UNSEEN_S)
    if (due := placed_by(observed, intent, view)) is not None:
        times.append(due)
    for pod in observed.pods.values():
        deadline = unix_s(pod.metadata.deletion_timestamp)
        if deadline is not None:
            times.append(deadline + OVERDUE_S + 1)
    return min((time for time in times if time > view.now), default=None)
