"""How generic tasks take the ends of their allocations (docs/reference/harness-protocol.md 17.3)."""

from __future__ import annotations

from typing import Any

import pytest

from libs.states.allocation import CLUSTER_PREEMPTS, GANG_TAKEN_BACK
from libs.states.generic_task import GenericTaskState, TaskTrigger
from services.scheduler.allocations.termination import NODE_DISABLED
from services.scheduler.tasks.generic import advance
from services.scheduler.tasks.generic_exits import KILLED, PAUSED, trigger_of
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from tests.harness import FakeClock
from tests.unit.scheduler.rows import allocation

NOW = FakeClock().now()
DELETED = "its workspace is being deleted"
TAKEN_BACK = f"{GANG_TAKEN_BACK}: 1 of 2"
DONE: dict[str, Any] = {"state": "TERMINATED", "stopped_early": True, "status_code": 0}
GONE: dict[str, Any] = {"state": "TERMINATED"}

EXITS: list[tuple[dict[str, Any], TaskTrigger]] = [
    ({**DONE}, TaskTrigger.EXITED),
    # Asked to leave, and done all the same: who leaves before he is done says so.
    ({**DONE, "preempted_at": NOW}, TaskTrigger.EXITED),
    ({**DONE, "preempted_at": NOW, "preempt_acked": True, "stopped_early": False}, TaskTrigger.LEFT),
    ({**GONE, "exit_kind": "FAILED", "status_code": 1}, TaskTrigger.FAILED),
    ({**GONE, "exit_kind": "TRANSIENT"}, TaskTrigger.FAILED),
    ({**GONE, "exit_kind": "INVALID"}, TaskTrigger.FAILED),
    # Nothing of it has run, so that it may begin anew even if it cannot resume.
    (
        {**GONE, "killed_at": NOW, "kill_reason": TAKEN_BACK, "exit_kind": "TRANSIENT", "preemptible": False},
        TaskTrigger.LEFT,
    ),
    ({**GONE, "killed_at": NOW, "kill_reason": PAUSED, "preemptible": False}, TaskTrigger.LEFT),
    ({**GONE, "killed_at": NOW, "kill_reason": "overdue", "preempted_at": NOW}, TaskTrigger.LEFT),
    ({**GONE, "killed_at": NOW, "kill_reason": CLUSTER_PREEMPTS}, TaskTrigger.LEFT),
    ({**GONE, "killed_at": NOW, "kill_reason": NODE_DISABLED}, TaskTrigger.LEFT),
    # Its first run does not know how to resume.
    ({**GONE, "killed_at": NOW, "kill_reason": CLUSTER_PREEMPTS, "preemptible": False}, TaskTrigger.KILLED),
    ({**GONE, "killed_at": NOW, "kill_reason": NODE_DISABLED, "preemptible": False}, TaskTrigger.KILLED),
    ({**GONE, "killed_at": NOW, "kill_reason": KILLED}, TaskTrigger.KILLED),
    ({**GONE, "killed_at": NOW, "kill_reason": DELETED}, TaskTrigger.KILLED),
    # Somebody stopped it who is not us.
    ({**GONE}, TaskTrigger.KILLED),
]


@pytest.mark.parametrize(("record", "trigger"), EXITS)
def test_end_of_an_allocation(record: dict[str, Any], trigger: TaskTrigger) -> None:
    assert trigger_of(allocation(**record)) == trigger


ROUNDS: list[tuple[str, list[dict[str, Any]], str, str | None]] = [
    # state, allocations, state afterwards, reason of the kill
    ("ACTIVE", [{}], "ACTIVE", None),
    ("ACTIVE", [DONE], "COMPLETED", None),
    ("STOPPING_PAUSED", [{}], "STOPPING_PAUSED", PAUSED),
    ("STOPPING_PAUSED", [], "PAUSED", None),
    ("STOPPING_PAUSED", [{"assigned_at": None, "state": "PENDING"}], "PAUSED", PAUSED),
    ("STOPPING_CANCELED", [{}], "STOPPING_CANCELED", KILLED),
    ("STOPPING_CANCELED", [], "CANCELED", None),
    ("STOPPING_CANCELED", [{"assigned_at": None, "state": "PENDING"}], "CANCELED", KILLED),
    # It is asked already, but a kill is for good.
    ("STOPPING_CANCELED", [{"preempted_at": NOW, "is_ready": True}], "STOPPING_CANCELED", KILLED),
    ("PAUSED", [], "PAUSED", None),
    ("COMPLETED", [], "COMPLETED", None),
]


@pytest.mark.parametrize(("state", "rows", "after", "reason"), ROUNDS)
def test_round(state: str, rows: list[dict[str, Any]], after: str, reason: str | None) -> None:
    allocations = [allocation(**{"preemptible": False, **row}) for row in rows]
    assert advance(GenericTaskState(state), allocations, now=NOW, out=OutboxBuffer()) == after
    assert [row.kill_reason for row in allocations] == [reason for _ in rows]
    assert all(row.exit_processed == (row.state == "TERMINATED") for row in allocations)


def test_one_that_listens_is_asked_to_leave() -> None:
    row = allocation(is_ready=True)
    assert advance(GenericTaskState.STOPPING_PAUSED, [row], now=NOW, out=OutboxBuffer()) == "STOPPING_PAUSED"
    assert (row.preempt_reason, row.killed_at) == (PAUSED, None)
