"""The observation of an allocation, which others are told, and the outcome, which is written down when it fails."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import msgspec

from libs.events.observations import AllocationObserved, FailureKind, ObservedPod
from services.launcher.backends.kubernetes.allocations.state.allocation import TrackedAllocation
from services.launcher.backends.kubernetes.allocations.state.intent import Outcome
from services.launcher.backends.kubernetes.allocations.state.observed_state import ObservedState
from services.launcher.backends.kubernetes.allocations.state.pods import end_of, observed_pod
from services.launcher.backends.kubernetes.allocations.state.status import (
    AllocationPhase,
    end_of_job,
    expected_causes,
    finished_condition,
    has_enough_pods,
)
from services.launcher.backends.kubernetes.client.objects import Pod
from services.launcher.reconcile import Existence

JOB_DELETED: Final = "job was deleted"
NO_DETAIL: Final = "job exited with a failure but we don't have pod-level detail"
MAX_SAVED_PODS: Final = 20
"""Failed pods whose ends are written down; one explains all."""


def observation(
    tracked: TrackedAllocation, *, takes_pods: Callable[[str], bool] = lambda _node: True
) -> AllocationObserved:
    """The observation, with revision 0.

    takes_pods  whether a node is in service
    """
    is_gone = tracked.status.existence is Existence.ENDED
    failure, message = _failure(tracked, is_gone=is_gone)
    stop = tracked.intent.stop
    pods = () if tracked.intent.refusal is not None else _pods(tracked, is_gone=is_gone)
    return AllocationObserved(
        allocation=tracked.allocation,
        pool=tracked.pool,
        revision=0,
        pods=pods,
        num_pods=tracked.observed.num_pods,
        gone=is_gone,
        stopped=is_gone and stop is not None and stop.ordered and stop.was_whole,
        failure=failure,
        message=message,
        quota_blocked=tracked.observed.quota_blocked,
        unplaced=tracked.status.unplaced,
        closed_nodes=tuple(sorted(node for node in {pod.node for pod in pods if pod.node} if not takes_pods(node))),
    )


def outcome_of(tracked: TrackedAllocation) -> Outcome:
    """Why the rest of the allocation has to end. To be asked when the reaction is END."""
    known, status = tracked.observed, tracked.status
    if status.phase is AllocationPhase.PODS_REFUSED and known.create_failure is not None:
        return Outcome(reason="its pods cannot be made", failure="LAUNCH_ERROR", message=known.create_failure[0])
    failed = [ended for ended in known.ended.values() if ended.failure]
    causes = expected_causes(known, status.causes)
    failed += [observed_pod(known.pods[name], cause) for name, cause in causes.items() if cause.failure]
    failed.sort(key=lambda pod: (pod.exit_code is None, pod.name))
    if not failed:
        return _outcome_of_jobs(known)
    return Outcome(reason=f"ended because pod {failed[0].name} failed", pods=tuple(failed[:MAX_SAVED_PODS]))


def _outcome_of_jobs(known: ObservedState) -> Outcome:
    """Of an allocation with several Jobs one of which has ended, and no pod says why."""
    failed = next((end for job in known.jobs.values() if (end := end_of_job(job)) and end.type == "Failed"), None)
    if failed is None:
        return Outcome(reason="ended because one of its jobs was deleted", failure="DELETED", message=JOB_DELETED)
    message = f"{NO_DETAIL}: {failed.message}"
    return Outcome(reason="ended because one of its jobs failed", failure="FAILED", message=message)


def _pods(tracked: TrackedAllocation, *, is_gone: bool) -> tuple[ObservedPod, ...]:
    known, causes = tracked.observed, tracked.status.causes
    now = [observed_pod(pod, causes.get(name)) for name, pod in known.pods.items()]
    pods = tuple(sorted((*known.ended.values(), *now), key=lambda pod: pod.name))
    pods += _presumed(tracked, pods) if is_gone else ()
    if len(tracked.parts) > 1:
        pods = tuple(msgspec.structs.replace(pod, slots=tracked.slots_of(pod.job)) for pod in pods)
    proxied = tracked.intent.proxied
    return tuple(msgspec.structs.replace(pod, proxied=proxied) for pod in pods) if proxied else pods


def _presumed(tracked: TrackedAllocation, known: Collection[ObservedPod]) -> tuple[ObservedPod, ...]:
    """Pods that were deleted before anybody here saw them, of a Job that says that all went well."""
    condition = finished_condition(tracked.observed)
    if condition is None or condition.type != "Complete":
        return ()
    several = len(tracked.parts) > 1
    return tuple(
        ObservedPod(name=f"{part.name}-{index}", job=part.name, state="TERMINATED", exit_code=0)
        for part in tracked.parts
        for index in range(
            sum(pod.job == part.name for pod in known) if several else len(known),
            part.pods if several else tracked.observed.num_pods,
        )
    )


def _failure(tracked: TrackedAllocation, *, is_gone: bool) -> tuple[FailureKind, str]:
    """Of the allocation as a whole, beyond what its pods say."""
    known, intent = tracked.observed, tracked.intent
    if intent.refusal is not None:
        return ("", "") if intent.refusal.withdrawn else ("LAUNCH_ERROR", intent.refusal.message)
    if intent.outcome is not None and intent.outcome.failure:
        return intent.outcome.failure, intent.outcome.message
    if intent.stop is not None or not is_gone:
        return "", ""
    if known.job is None:
        return ("", "") if has_enough_pods(known) else ("DELETED", known.gone_because or JOB_DELETED)
    condition = finished_condition(known)
    if condition is not None and condition.type == "Failed" and not _knows_a_failure(known):
        return "FAILED", f"{NO_DETAIL}: {condition.message}"
    return "", ""


def _knows_a_failure(known: ObservedState) -> bool:
    """Whether some pod explains why all have ended; others may have been deleted before anybody here saw them."""
    explained = any(pod.failure for pod in known.ended.values()) or any(map(_failed, known.pods.values()))
    return explained or has_enough_pods(known)


def _failed(pod: Pod) -> bool:
    end = end_of(pod)
    return end is not None and bool(end.failure)
