"""Exit record of an allocation, from what was seen of its pods and what was asked of it. Pure.

The first rule that matches decides. Source: docs/reference/scheduling.md 7 (exit record),
docs/reference/harness-protocol.md 17.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from libs.events.failures import FailureType, failure_of, type_of
from libs.events.observations import AllocationObserved, ObservedPod
from libs.states.allocation import GANG_TAKEN_BACK
from services.scheduler.allocations.time_limits import is_up, reached
from services.scheduler.transactions.rows import AllocationRow


class ExitKind(StrEnum):
    """What the failure of an allocation means to its owner; the empty kind is no failure."""

    NONE = ""
    FAILED = "FAILED"
    TRANSIENT = "TRANSIENT"
    """The system's fault: it does not count as a restart."""
    INVALID = "INVALID"
    """It can never run."""
    INTERNAL = "INTERNAL"


class Failure(Struct, frozen=True):
    type: FailureType
    message: str
    exit_code: int | None = None
    explanation: str = ""
    """What is known beyond the words that everybody looks for."""

    def __str__(self) -> str:
        if self.exit_code is not None:
            # Also without a message, which leaves two spaces: this is what people and their scripts search for.
            return f"{self.type}: {self.message} (exit code {self.exit_code})"
        return f"{self.type}{_detail(self.message)}"


class ExitRecord(Struct, frozen=True, kw_only=True):
    reason: str
    error: str | None = None
    kind: ExitKind = ExitKind.NONE
    stopped_early: bool = False
    """It ended by itself with success: the code inside decided that it is done."""
    status_code: int | None = None
    killed: bool = False
    """It was ended without being asked, and that is no failure."""
    killed_with: int | None = None
    """The exit code that the kill has left it with, for its log alone: it is nobody's ``status_code``."""
    explanation: str = ""
    """What its owner should read before anything else, as the words of an API that refused it."""


CRASHED: Final = "job crashed"
"""The message of whatever could not be made."""

_BLAMED: Final[dict[FailureType, tuple[str, ExitKind]]] = {
    FailureType.AGENT_FAILED: ("allocation failed due to agent failure", ExitKind.TRANSIENT),
    FailureType.RESOURCES_ABORTED: ("allocation aborted", ExitKind.TRANSIENT),
}
"""How the reason begins, and whose fault it is; all other failures are the task's own, and count as its restarts."""

_BY_SIGNAL: Final = (137, 143)
STOPPED_EARLY: Final = "allocation stopped early"
"""How clients know the reason of an end without a failure and without anybody's doing."""


def exit_record(row: AllocationRow, seen: AllocationObserved, now: datetime) -> ExitRecord:
    """The record of an allocation of which ``seen`` is the last that will be seen."""
    after = f"after {_elapsed(row.start_time or row.assigned_at or row.requested_at, now)}"
    if is_up(row, now):
        after = f"{after}: {reached(row)}"
    pods = seen.pods or row.pods_seen
    failure = _failure(seen, pods)
    codes = [pod.exit_code for pod in pods if pod.exit_code is not None]
    # Our own record of the kill says more than the launcher's: it knows what had failed before.
    killed = row.killed_while_running if row.killed_at is not None else seen.stopped
    if failure is None and seen.gone and not seen.stopped and are_done(pods, row.num_pods):
        # It had ended by itself before the kill reached its launcher, which nobody knew when it was decided.
        killed = False
    if killed and was_taken_back(row):
        # Through no fault of its own, so that it comes back, with a pause, and loses no restart.
        return ExitRecord(reason=f"allocation aborted {after}: {row.kill_reason}", kind=ExitKind.TRANSIENT, killed=True)
    if killed:
        return ExitRecord(reason=f"allocation killed {after}", killed=True, killed_with=max(codes, default=None))
    if row.preemptible and row.preempt_acked:
        return ExitRecord(
            reason=f"allocation preempted {after}",
            status_code=max(codes, default=None),
            killed=row.killed_at is not None,
        )
    if failure is not None:
        return _failed(failure)
    if pods and all(pod.state == "TERMINATED" for pod in pods):
        return ExitRecord(reason=f"{STOPPED_EARLY} {after}", stopped_early=True, status_code=0)
    lost = str(Failure(FailureType.RESTORE_ERROR, seen.message))
    return ExitRecord(reason=f"allocation failed due to restore error: {lost}", error=lost, kind=ExitKind.TRANSIENT)


def exit_before_start(row: AllocationRow, now: datetime) -> ExitRecord:
    """The record of an allocation that was asked to end while it waited for its slots."""
    return ExitRecord(reason=f"allocation aborted after {_elapsed(row.requested_at, now)}")


def internal_error(kind: ExitKind, message: str) -> ExitRecord:
    reason = f"allocation handler crashed due to error: {message}"
    return ExitRecord(reason=reason, error=message, kind=kind)


def killed_in_words(exit_code: int | None) -> str:
    """What a kill is called in the log, though it is no error (docs/reference/kubernetes.md 10.4).

    exit_code  None where a pod was deleted before it could say
    """
    return str(Failure(FailureType.RESOURCES_FAILED, "killed", exit_code or None))


def was_taken_back(row: AllocationRow) -> bool:
    """Whether it is a gang that was ended because it did not become whole."""
    return row.kill_reason is not None and row.kill_reason.startswith(GANG_TAKEN_BACK)


def has_failed(pod: ObservedPod) -> bool:
    """True for a pod that ended otherwise than with exit code 0."""
    return failure_of(pod) is not None


def are_done(pods: Sequence[ObservedPod], num_pods: int) -> bool:
    """True when all of ``num_pods`` pods have ended with exit code 0."""
    return len(pods) >= num_pods and all(pod.state == "TERMINATED" and pod.exit_code == 0 for pod in pods)


def _failed(failure: Failure) -> ExitRecord:
    begin, kind = _BLAMED.get(failure.type, ("allocation failed", ExitKind.FAILED))
    return ExitRecord(
        reason=f"{begin}: {failure}{_detail(failure.explanation)}",
        error=str(failure),
        kind=kind,
        status_code=failure.exit_code,
        explanation=failure.explanation,
    )


def _failure(seen: AllocationObserved, pods: Sequence[ObservedPod]) -> Failure | None:
    """The failure that explains the others: a lost node before anything, then a pod's own exit before the deaths of
    its siblings, then what the launcher says of the whole."""
    failed = sorted(((kind, pod) for pod in pods if (kind := failure_of(pod))), key=lambda each: _as_cause(each[1]))
    if failed:
        kind, pod = failed[0]
        return Failure(kind, pod.message, pod.exit_code)
    whole = type_of(seen.failure)
    if seen.failure == "LAUNCH_ERROR" and whole is not None:
        # Launchers of before said so themselves.
        return Failure(whole, CRASHED, explanation=seen.message.removeprefix(f"{CRASHED}: "))
    return None if whole is None else Failure(whole, seen.message)


def _as_cause(pod: ObservedPod) -> int:
    """Smaller is more likely the cause; pods that are equally likely stay in rank order."""
    if pod.is_consequence:
        return 3
    if pod.failure == "NODE_LOST":
        return 0
    if pod.failure == "LAUNCH_ERROR":
        return 1
    return 2 if pod.exit_code in _BY_SIGNAL or pod.exit_code is None else 1


def _detail(message: str) -> str:
    return f": {message}" if message else ""


def _elapsed(since: datetime, now: datetime) -> str:
    """Like ``1h2m3s``."""
    seconds = max(int((now - since).total_seconds()), 0)
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    return "".join((f"{hours}h" if hours else "", f"{minutes}m" if hours or minutes else "", f"{seconds % 60}s"))
