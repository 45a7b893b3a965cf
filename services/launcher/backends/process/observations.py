"""Makes an observation of what was written down about an allocation (pure)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from libs.events.observations import AllocationObserved, ObservedPod, PodState
from services.launcher.backends.process.records import Assignment, ProcessPodStatus, StatusRecord, StopRecord

RUNNING: Final = ProcessPodStatus(state="RUNNING")
LOST: Final = ProcessPodStatus(
    state="TERMINATED", failure="NODE_LOST", message="the supervisor of the task was killed, and the task with it"
)


def is_over(assignment: Assignment, status: StatusRecord | None) -> bool:
    """Whether nothing of the allocation runs any more, or ever will."""
    return bool(assignment.refusal) or (status is not None and status.ended)


def awaits_delivery(status: StatusRecord | None, rank: int) -> bool:
    """Whether a pod has come to its own end, so that what it printed last belongs before what is said of its end."""
    return status is not None and not status.stopped and status.pods[rank].exit_code is not None


def observed(
    assignment: Assignment,
    status: StatusRecord | None,
    *,
    begun: PodState,
    node: str,
    address: str,
    undelivered: Collection[int] = (),
) -> AllocationObserved:
    """The observation, with revision 0.

    begun        the state of pods of which nothing is known yet
    undelivered  ranks of pods that count as running until their last lines are delivered
    """
    known = status.pods if status is not None else (ProcessPodStatus(state=begun),) * len(assignment.pods)
    states = [RUNNING if rank in undelivered else state for rank, state in enumerate(known)]
    pods = tuple(
        ObservedPod(
            name=name,
            state=state.state,
            node=node,
            addresses=(address,),
            devices=devices,
            exit_code=state.exit_code,
            failure=state.failure,
            message=state.message,
        )
        for name, devices, state in zip(assignment.pods, assignment.devices, states, strict=True)
    )
    return AllocationObserved(
        allocation=assignment.order.allocation,
        pool=assignment.order.pool,
        revision=0,
        pods=() if assignment.refusal else pods,
        num_pods=len(assignment.pods),
        gone=is_over(assignment, status) and not undelivered,
        stopped=status is not None and status.stopped,
        failure="LAUNCH_ERROR" if assignment.refusal else "",
        message=assignment.refusal,
    )


def status_without_supervisor(
    assignment: Assignment, status: StatusRecord | None, stop: StopRecord | None, last_words: str
) -> StatusRecord:
    """How an allocation ended whose supervisor did not live to say so.

    status      the last it said; None when it never said anything, and so never started a pod
    last_words  what it printed
    """
    if status is None:
        never = ProcessPodStatus(state="TERMINATED", failure="ABORTED", message=f"supervisor failed: {last_words}")
        return StatusRecord(pods=(never,) * len(assignment.pods), stopped=stop is not None and stop.ordered, ended=True)
    pods = tuple(pod if pod.state == "TERMINATED" else LOST for pod in status.pods)
    was_whole = all(pod.state != "TERMINATED" for pod in status.pods)
    stopped = status.stopped or (stop is not None and stop.ordered and was_whole)
    return StatusRecord(pods=pods, stopped=stopped, ended=True)
