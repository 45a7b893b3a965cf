"""Applies an observation to its allocation. Pure: it changes the row, and says what goes out.

Observations come twice, late and out of order; the revision tells, and the ladder of states is only climbed.
Source: docs/reference/scheduling.md 7; docs/reference/harness-protocol.md 3.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from libs.events.observations import AllocationObserved, ObservedPod
from libs.states.allocation import (
    CLUSTER_PREEMPTS,
    GANG_TAKEN_BACK,
    AllocationState,
    at_least,
    least_progressed,
    most_progressed,
)
from services.scheduler.allocations.exits import are_done, exit_record, has_failed
from services.scheduler.allocations.termination import finish, is_over, kill, terminate
from services.scheduler.transactions.allocation_messages import changed, note
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import AllocationRow


def observe(row: AllocationRow, seen: AllocationObserved, *, now: datetime, out: OutboxBuffer) -> None:
    """Apply ``seen`` unless something newer was applied before."""
    if seen.revision <= row.revision or is_over(row) or row.assigned_at is None:
        return
    row.revision = seen.revision
    before = row.pods_seen
    if seen.pods:
        row.pods = msgspec.to_builtins(seen.pods)
    _climb(row, state_seen(seen, row.num_pods), now=now, out=out)
    if _have_started(row.pods_seen, row.num_pods) and not _were_started(before, row.num_pods):
        note(row, f"Resources for {row.name} have started", now=now, out=out)
    if ended(seen, row.num_pods):
        if _is_undecided(row, seen):
            return
        finish(row, exit_record(row, seen, now), now=now, out=out)
    elif seen.unplaced:
        kill(row, reason=f"{GANG_TAKEN_BACK}: {seen.unplaced}", now=now, out=out)
    elif any(has_failed(pod) for pod in seen.pods):
        kill(row, reason="another pod of the allocation has failed", now=now, out=out)
    elif any(pod.has_to_leave and pod.state != "TERMINATED" for pod in seen.pods):
        terminate(row, reason=CLUSTER_PREEMPTS, now=now, out=out)


def state_seen(seen: AllocationObserved, num_pods: int) -> AllocationState:
    """The rung that all pods have reached; ASSIGNED until each has been seen, TERMINATING once one has ended."""
    if any(pod.state == "TERMINATED" for pod in seen.pods):
        return AllocationState.TERMINATING
    if len(seen.pods) < num_pods:
        return AllocationState.ASSIGNED
    return least_progressed(AllocationState(pod.state) for pod in seen.pods)


def ended(seen: AllocationObserved, num_pods: int) -> bool:
    """Whether nothing of the allocation runs any more."""
    if seen.gone or seen.stopped or seen.failure:
        return True
    return len(seen.pods) >= num_pods and all(pod.state == "TERMINATED" for pod in seen.pods)


def _is_undecided(row: AllocationRow, seen: AllocationObserved) -> bool:
    """Whether it was killed, and has ended with success, by itself or because SIGTERM came: it runs again if it was to
    make room, so that it makes a difference. Launchers tell the two apart with ``gone``, at the latest."""
    is_last = seen.gone or seen.stopped or seen.failure
    return row.killed_at is not None and not is_last and are_done(seen.pods, row.num_pods)


def _climb(row: AllocationRow, state: AllocationState, *, now: datetime, out: OutboxBuffer) -> None:
    before = AllocationState(row.state)
    row.state = most_progressed(before, state)
    # TERMINATING says nothing about how far they came.
    is_assigned = state != AllocationState.TERMINATING and at_least(state, AllocationState.PULLING)
    if row.start_time is None and (_ran(row.pods_seen) or is_assigned):
        row.start_time = now
        note(row, f"{row.name} was assigned to an agent", now=now, out=out)
    if row.state != before:
        out.announce(changed(row, "state"))


def _have_started(pods: Sequence[ObservedPod], num_pods: int) -> bool:
    return _ran(pods) or (len(pods) >= num_pods and all(pod.state == "RUNNING" for pod in pods))


def _were_started(pods: Sequence[ObservedPod], num_pods: int) -> bool:
    """Whether it was said that they have started, or is not to be said any more, because one has ended.

    The state of the allocation does not tell: what the task says of itself lifts it too, and may come first.
    """
    return _have_started(pods, num_pods) or any(pod.state == "TERMINATED" for pod in pods)


def _ran(pods: Iterable[ObservedPod]) -> bool:
    """A short task may have ended before it was first seen: that it ran shows in its exit code."""
    return any(pod.exit_code is not None for pod in pods)
