"""Terminates an allocation, by preemption or by a kill. Pure: what changes is the row, and what goes out.

Preemption asks: the task checkpoints, acknowledges and exits, and is killed at the deadline. It takes a task that can
be asked: preemptible, with time to leave, and ready, which means that its code runs and listens. Everything else is
killed at once, which is SIGTERM and some seconds.
All of it may be done again and changes nothing then. Source: docs/reference/scheduling.md 7 (flows) and 8.1.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from libs.events.failures import FailureType
from libs.events.orders import Order
from libs.states.allocation import AllocationState
from services.scheduler.allocations.exits import (
    STOPPED_EARLY,
    ExitKind,
    ExitRecord,
    Failure,
    exit_before_start,
    has_failed,
    killed_in_words,
)
from services.scheduler.transactions.allocation_messages import changed, note
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import AllocationRow

KILL_GRACE_S: Final = 15.0
"""Seconds between SIGTERM and SIGKILL (docs/reference/scheduling.md 8.2)."""


NODE_DISABLED: Final = "node disabled without drain"
"""The reason for killing what an administrator wants gone from a node (docs/reference/scheduling.md 11.2)."""


def is_over(row: AllocationRow) -> bool:
    return row.state == AllocationState.TERMINATED


def is_leaving(row: AllocationRow) -> bool:
    """Whether it was asked to leave or killed, or is over."""
    return row.preempted_at is not None or row.killed_at is not None or is_over(row)


def terminate(row: AllocationRow, *, reason: str, now: datetime, out: OutboxBuffer) -> None:
    """Ask it to leave if it can be asked, else kill it."""
    if is_leaving(row):
        return
    if row.assigned_at is None or not (row.preemptible and row.is_ready and row.preemption_timeout_s):
        kill(row, reason=reason, now=now, out=out)
        return
    row.preempted_at = now
    row.preempt_deadline = now + timedelta(seconds=row.preemption_timeout_s)
    row.preempt_reason = reason
    note(row, f"gracefully terminating allocation's remaining resources (reason: {reason})", now=now, out=out)
    out.announce(changed(row, "signal"))


def kill(row: AllocationRow, *, reason: str, now: datetime, out: OutboxBuffer) -> None:
    """End it without asking. One that still waits for its slots is over at once."""
    if row.killed_at is not None or is_over(row):
        return
    row.killed_at = now
    row.kill_reason = reason
    if row.assigned_at is None:
        finish(row, exit_before_start(row, now), now=now, out=out)
        return
    # What died before is its own failure; what dies from here on died of the kill.
    row.killed_while_running = not any(has_failed(pod) for pod in row.pods_seen)
    note(row, f"forcibly killing allocation's remaining resources (reason: {reason})", now=now, out=out)
    out.order(stop_order(row))
    out.announce(changed(row, "signal"))


def follow_up(row: AllocationRow, *, now: datetime, out: OutboxBuffer) -> None:
    """Do what is due without any news of it: kill it, or ask it to leave, as the api was told or its time is up."""
    if row.kill_reason is not None:
        kill(row, reason=row.kill_reason, now=now, out=out)
    if row.preempt_reason is not None:
        terminate(row, reason=row.preempt_reason, now=now, out=out)
    if row.preempt_deadline is not None and row.preempt_deadline <= now:
        overdue = f"allocation did not preempt in {timedelta(seconds=row.preemption_timeout_s)}"
        kill(row, reason=overdue, now=now, out=out)


def stop_order(row: AllocationRow) -> Order:
    return Order(
        allocation=row.allocation_id,
        pool=row.pool,
        desired="stop",
        grace_s=KILL_GRACE_S,
        reason=row.kill_reason or "",
        namespace=row.namespace,
    )


def finish(row: AllocationRow, record: ExitRecord, *, now: datetime, out: OutboxBuffer) -> None:
    """It is over: record why, give its slots back, withdraw its order. Its sessions are the shell's to revoke."""
    if is_over(row):
        return
    started = row.assigned_at is not None
    row.state = AllocationState.TERMINATED
    row.end_time = now
    row.released_at = now
    row.exit_reason = record.reason
    row.exit_error = record.error
    row.exit_kind = record.kind
    row.stopped_early = record.stopped_early
    row.status_code = record.status_code
    row.wait_reason = ""
    if started:
        out.withdraw(row.pool, row.allocation_id)
        if record.explanation:
            note(row, record.explanation, now=now, out=out)
        has_crashed = record.status_code and not record.killed
        note(row, _exit_line(record), now=now, out=out, level="ERROR" if has_crashed else _level(record))
    note(row, f"{row.name} {_ending(record)}", now=now, out=out, level=_level(record))
    out.announce(changed(row, "ended"))


def _ending(record: ExitRecord) -> str:
    """The reason, as clients have it; whoever reads the log of a task that has done its work sees that it has."""
    if record.stopped_early:
        return f"ended by itself{record.reason.removeprefix(STOPPED_EARLY)}"
    return f"was terminated: {record.reason}"


def _exit_line(record: ExitRecord) -> str:
    if record.error is not None:
        return f"crashed: {record.error}"
    if record.killed:
        return f"killed: {killed_in_words(record.killed_with)}"
    if record.status_code:  # it has left as it was asked to, which is no error, whatever its exit code
        return f"crashed: {Failure(FailureType.RESOURCES_FAILED, '', record.status_code)}"
    return "resources exited successfully with a zero exit code"


def _level(record: ExitRecord) -> str:
    return "INFO" if record.kind == ExitKind.NONE else "ERROR"
