"""What follows from what is known of an allocation: whether it exists, what to tell of it, what to do (pure)."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec
from msgspec import Struct

from libs.events.observations import AllocationObserved, FailureKind, PodSeen
from services.launcher.backends.kubernetes.allocations.lost_nodes import LostNodes
from services.launcher.backends.kubernetes.allocations.pods import (
    Cause,
    Trouble,
    end_of,
    is_over,
    is_scheduled,
    seen,
    trouble_of,
)
from services.launcher.backends.kubernetes.allocations.state import OVERDUE_S, Outcome, Run
from services.launcher.backends.kubernetes.client.objects import Condition, Pod
from services.launcher.backends.kubernetes.client.times import unix_s
from services.launcher.reconcile import Existence

JOB_DELETED: Final = "job was deleted"
NO_DETAIL: Final = "job exited with a failure but we don't have pod-level detail"
UNSEEN_S: Final = 30.0
"""How long after its time a task that nobody can see may be stopping, before it is taken for gone."""
MAX_SAVED_PODS: Final = 20
"""Failed pods whose ends are written down; one explains all."""


class View(Struct, frozen=True, kw_only=True):
    """What there is to know besides the allocation itself."""

    now: float
    """Unix time, seconds."""
    lost: LostNodes
    stuck_grace_s: float


class Reaction(Enum):
    END = "end"
    """End what is left of it, and write down why: ``Run.outcome``."""
    SETTLE = "settle"
    """List its pods: the Job makes no more, and the watch may be behind."""
    CULL = "cull"
    """Delete pods that are there although the rest of it was ended: ``uncalled``."""
    STOP = "stop"
    """Carry out a stop that was asked for."""


def finished(run: Run) -> Condition | None:
    """The condition by which the Job says that it has finished."""
    conditions = run.job.status.conditions if run.job is not None else ()
    return next((each for each in conditions if each.type in ("Complete", "Failed") and each.status == "True"), None)


def existence(run: Run, view: View) -> Existence:
    if run.refusal is not None:
        return Existence.ENDED
    if run.is_fragment and not run.unseen:
        return Existence.LEFT
    if run.unseen or run.stage != "created" or _live(run, view):
        return Existence.LIVE
    if run.stop is not None:
        return Existence.LIVE if run.job is not None else Existence.ENDED
    if run.job is None or (run.outcome is None and _has_enough_ends(run, view)):
        return Existence.ENDED
    return Existence.ENDED if _will_make_no_pods(run) and run.settled else Existence.LIVE


def observation(run: Run, view: View) -> AllocationObserved:
    """The observation, with revision 0."""
    is_gone = existence(run, view) is Existence.ENDED
    failure, message = _failure(run, is_gone=is_gone)
    if run.refusal is not None:
        pods: tuple[PodSeen, ...] = ()
    else:
        now = [seen(pod, run.cause_of(pod, now=view.now, lost=view.lost)) for pod in run.pods.values()]
        pods = tuple(sorted((*run.ended.values(), *now), key=lambda pod: pod.name))
        pods += _presumed(run, len(pods)) if is_gone else ()
        pods = tuple(msgspec.structs.replace(pod, proxied=run.proxied) for pod in pods) if run.proxied else pods
    return AllocationObserved(
        allocation=run.allocation,
        pool=run.pool,
        revision=0,
        pods=pods,
        num_pods=run.num_pods,
        gone=is_gone,
        stopped=is_gone and run.stop is not None and run.stop.ordered and run.stop.was_whole,
        failure=failure,
        message=message,
        quota_blocked=run.quota_blocked,
    )


def judge(run: Run, view: View) -> None:
    """Take what has lasted too long for a failure. Time alone can bring this about."""
    if run.unseen and run.stop is not None and view.now >= run.stop.deadline + UNSEEN_S:
        run.vanish(run.unseen, now=view.now, lost=view.lost)
    for name, since in run.troubles.items():
        trouble = trouble_of(run.pods[name])
        if trouble is None or name in run.marked or run.is_asked_to_end:
            continue
        kind, words = trouble
        if kind is Trouble.IMAGE:
            error = run.pull_errors.get(name, "")
            # New versions of Kubernetes say both at once.
            run.marked[name] = Cause(failure="IMAGE_PULL", message=words if error in words else f"{words}: {error}")
        elif view.now >= since + view.stuck_grace_s:
            run.marked[name] = Cause(failure="LAUNCH_ERROR", message=words)


def reaction(run: Run, view: View) -> Reaction | None:
    """What to do about it now, which nobody has ordered."""
    if run.stage != "created" or run.refusal is not None or run.unseen:
        return None
    if run.stop is not None:
        return None if run.stop_sent else Reaction.STOP
    if run.job is None:
        return None
    return _while_it_lasts(run, view) if run.outcome is None else _while_it_ends(run)


def _while_it_ends(run: Run) -> Reaction | None:
    if not run.outcome_saved:
        return Reaction.END
    if uncalled(run):
        return Reaction.CULL
    return Reaction.SETTLE if _will_make_no_pods(run) and not run.settled else None


def _while_it_lasts(run: Run, view: View) -> Reaction | None:
    if _refused_pods(run, view):
        return Reaction.END
    is_complete = _has_enough_ends(run, view)
    if finished(run) is not None:
        return None if run.settled or is_complete else Reaction.SETTLE
    # The failure of a pod that is gone has to be written down even when nothing is left to be ended; and old clusters
    # would put another pod in its place.
    is_forgotten = any(pod.failure for pod in run.ended.values())
    has_failed = run.first_failure(now=view.now, lost=view.lost) is not None
    return Reaction.END if has_failed and (is_forgotten or not is_complete) else None


def uncalled(run: Run) -> list[Pod]:
    """Pods of which nobody has asked yet that they end.

    The Job controller does so when the Job is to have none; but not always with one that it makes in that moment.
    """
    return [
        pod
        for name, pod in run.pods.items()
        if pod.metadata.deletion_timestamp is None and not is_over(pod) and name not in run.called
    ]


def outcome_of(run: Run, view: View) -> Outcome:
    """Why the rest of the allocation has to end. To be asked when ``reaction`` says END."""
    if _refused_pods(run, view) and run.create_failure is not None:
        return Outcome(reason="its pods cannot be made", failure="LAUNCH_ERROR", message=run.create_failure[0])
    failed = [ended for ended in run.ended.values() if ended.failure]
    for name, pod in run.pods.items():
        cause = run.marked.get(name) or run.cause_of(pod, now=view.now, lost=view.lost)
        if cause is not None and cause.failure:
            failed.append(seen(pod, cause))
    failed.sort(key=lambda pod: (pod.exit_code is None, pod.name))
    return Outcome(reason=f"ended because pod {failed[0].name} failed", pods=tuple(failed[:MAX_SAVED_PODS]))


def restore(run: Run, outcome: Outcome) -> None:
    """Take in what a launcher before us wrote down, before any pod is seen."""
    run.outcome = outcome
    run.outcome_saved = True
    for pod in outcome.pods:
        run.marked[pod.name] = Cause(
            exit_code=pod.exit_code,
            failure=pod.failure,
            message=pod.message,
            is_consequence=pod.is_consequence,
            vanished=pod.vanished,
        )
        run.ended[pod.name] = pod


def next_look(run: Run, view: View) -> float | None:
    """When time alone will change something (Unix time, seconds), or None."""
    times = [since + view.stuck_grace_s for name, since in run.troubles.items() if name not in run.marked]
    if run.create_failure is not None and not run.quota_blocked:
        times.append(run.create_failure[1] + view.stuck_grace_s)
    if run.unseen and run.stop is not None:
        times.append(run.stop.deadline + UNSEEN_S)
    for pod in run.pods.values():
        deadline = unix_s(pod.metadata.deletion_timestamp)
        if deadline is not None:
            times.append(deadline + OVERDUE_S + 1)
    return min((time for time in times if time > view.now), default=None)


def is_partly_scheduled(run: Run) -> bool:
    """Whether some pods of a gang hold their slots while others wait for theirs."""
    scheduled = sum(is_scheduled(pod) for pod in run.pods.values())
    return run.num_pods > 1 and 0 < scheduled < run.num_pods and not run.is_asked_to_end


def _will_make_no_pods(run: Run) -> bool:
    """Whether the Job controller is done. Before 1.23 it replaces a pod that is deleted, until it reads otherwise."""
    assert run.job is not None
    is_ended = run.outcome_saved and run.job.status.active == 0
    return is_ended or finished(run) is not None


def _live(run: Run, view: View) -> list[Pod]:
    return [pod for pod in run.pods.values() if run.cause_of(pod, now=view.now, lost=view.lost) is None]


def _has_enough_ends(run: Run, view: View) -> bool:
    """Whether as many pods have ended as there should be, and none lives."""
    return _has_enough_pods(run) and not _live(run, view)


def _has_enough_pods(run: Run) -> bool:
    return len(run.ended) + len(run.pods) >= run.num_pods


def _refused_pods(run: Run, view: View) -> bool:
    return (
        run.create_failure is not None
        and not run.quota_blocked
        and not run.pods
        and view.now >= run.create_failure[1] + view.stuck_grace_s
    )


def _failure(run: Run, *, is_gone: bool) -> tuple[FailureKind, str]:
    """Of the allocation as a whole, beyond what its pods say."""
    if run.refusal is not None:
        return ("", "") if run.refusal.withdrawn else ("LAUNCH_ERROR", run.refusal.message)
    if run.outcome is not None and run.outcome.failure:
        return run.outcome.failure, run.outcome.message
    if run.stop is not None or not is_gone:
        return "", ""
    if run.job is None:
        return ("", "") if _has_enough_pods(run) else ("DELETED", run.gone_because or JOB_DELETED)
    condition = finished(run)
    if condition is not None and condition.type == "Failed" and not _knows_a_failure(run):
        return "FAILED", f"{NO_DETAIL}: {condition.message}"
    return "", ""


def _knows_a_failure(run: Run) -> bool:
    """Whether some pod explains why all have ended; others may have been deleted before anybody here saw them."""
    known = any(pod.failure for pod in run.ended.values()) or any(map(_failed, run.pods.values()))
    return known or _has_enough_pods(run)


def _failed(pod: Pod) -> bool:
    end = end_of(pod)
    return end is not None and bool(end.failure)


def _presumed(run: Run, known: int) -> tuple[PodSeen, ...]:
    """Pods that were deleted before anybody here saw them, of a Job that says that all went well."""
    condition = finished(run)
    if condition is None or condition.type != "Complete":
        return ()
    return tuple(
        PodSeen(name=f"{run.job_name}-{index}", job=run.job_name, state="TERMINATED", exit_code=0)
        for index in range(known, run.num_pods)
    )
