"""Which tasks run again after they were to make room (docs/scheduling.md, preemption)."""

from __future__ import annotations

from typing import Any

import pytest

from libs.events.observations import AllocationObserved, ObservedPod
from libs.maintenance.windows import UNDER_MAINTENANCE
from libs.states.allocation import CLUSTER_PREEMPTS
from libs.states.generic_task import TaskTrigger
from services.scheduler.allocations.observation import observe
from services.scheduler.allocations.termination import NODE_DISABLED, terminate
from services.scheduler.tasks.ending import comes_back
from services.scheduler.tasks.generic_exits import trigger_of
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import AllocationRow
from tests.harness import FakeClock
from tests.unit.scheduler.rows import allocation

NOW = FakeClock().now()


def end_of_killed(reason: str, *, exit_code: int, stopped: bool) -> AllocationRow:
    """A command that is killed to make room, and the last that its launcher says of it."""
    row, out = allocation(preemption_timeout_s=0), OutboxBuffer()
    terminate(row, reason=reason, now=NOW, out=out)
    assert row.killed_at == NOW
    pod: dict[str, Any] = {"name": "p", "state": "TERMINATED", "exit_code": exit_code}
    pods = (ObservedPod(**pod, failure="FAILED" if exit_code else ""),)
    last = AllocationObserved(allocation="1.x.1", pool="default", revision=1, pods=pods, gone=True, stopped=stopped)
    observe(row, last, now=NOW, out=out)
    return row


@pytest.mark.parametrize("reason", [CLUSTER_PREEMPTS, NODE_DISABLED, UNDER_MAINTENANCE])
def test_what_was_done_before_the_kill_reached_it_does_not_run_again(reason: str) -> None:
    row = end_of_killed(reason, exit_code=0, stopped=False)
    assert (row.stopped_early, row.status_code, trigger_of(row)) == (True, 0, TaskTrigger.EXITED)
    assert not comes_back(row)


@pytest.mark.parametrize("exit_code", [0, 1, 143])
def test_what_ends_on_sigterm_has_not_finished_whatever_it_exits_with(exit_code: int) -> None:
    row = end_of_killed(CLUSTER_PREEMPTS, exit_code=exit_code, stopped=True)
    assert trigger_of(row) == TaskTrigger.LEFT
    assert comes_back(row)
