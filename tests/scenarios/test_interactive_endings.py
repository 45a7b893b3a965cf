"""What the log of an interactive task says of its life, and its exit status: docs/reference/tasks-and-cli.md 2.10.

Times stand still, so every duration is 0s. The line "Service of ... is available" is the api's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from libs.events.observations import AllocationObserved, FailureKind, ObservedPod, PodState
from services.api.queries.interactive.messages import exit_status
from services.scheduler.allocations.observation import observe
from services.scheduler.allocations.termination import follow_up
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import AllocationRow
from tests.harness import FakeClock
from tests.unit.scheduler.rows import allocation

NAME = "Command (calmly-red-cat)"
NOW = FakeClock().now()
BEGINS = [f"INFO {NAME} was assigned to an agent", f"INFO Resources for {NAME} have started"]
KILLS = "INFO forcibly killing allocation's remaining resources (reason: user requested kill)"
END_OF_A_KILL = f"INFO {NAME} was terminated: allocation killed after 0s"
KILLED = ["INFO killed: resources failed with non-zero exit code: killed", END_OF_A_KILL]
KILLED_BY_SIGNAL = [f"{KILLED[0]} (exit code 137)", END_OF_A_KILL]
SUCCEEDED = [
    "INFO resources exited successfully with a zero exit code",
    f"INFO {NAME} ended by itself after 0s",
]
KILL = "kill"
Step = AllocationObserved | str
"""What a launcher sees, or what a user asks for."""


def failed(text: str, began: str = "allocation failed") -> list[str]:
    return [f"ERROR crashed: {text}", f"ERROR {NAME} was terminated: {began}: {text}"]


def sees(state: PodState, failure: FailureKind = "", **pod: Any) -> AllocationObserved:
    return seen(ObservedPod(name="p", state=state, failure=failure, **pod))


def seen(*pods: ObservedPod, **fields: Any) -> AllocationObserved:
    return AllocationObserved(allocation="1.x.1", pool="default", revision=0, pods=pods, **fields)


class Case(NamedTuple):
    name: str
    steps: Sequence[Step]
    lines: Sequence[str]
    exit_status: str
    assigned: bool = True


RUNNING = (sees("PULLING"), sees("RUNNING"))
WELL = "allocation exited successfully"
CODE_1 = "resources failed with non-zero exit code: container exited (exit code 1)"
LOST = "agent failed while the container was running: node n is gone"
NO_RESTORE = "RM failed to restore the allocation"
CASES = [
    Case("exit 0", (*RUNNING, sees("TERMINATED", exit_code=0)), [*BEGINS, *SUCCEEDED], WELL),
    Case("over before it was seen", (sees("TERMINATED", exit_code=0),), [*BEGINS, *SUCCEEDED], WELL),
    Case(
        "exit 1",
        (*RUNNING, sees("TERMINATED", "FAILED", exit_code=1, message="container exited")),
        [*BEGINS, *failed(CODE_1)],
        CODE_1,
    ),
    Case(
        "killed while it waits",
        (KILL,),
        [f"INFO {NAME} was terminated: allocation aborted after 0s"],
        "task was aborted before the task was started",
        assigned=False,
    ),
    Case(
        "killed while it runs",
        (*RUNNING, KILL, msgspec.structs.replace(sees("TERMINATED", "FAILED", exit_code=137), stopped=True)),
        [*BEGINS, KILLS, *KILLED_BY_SIGNAL],
        WELL,
    ),
    Case("killed before its pod was made", (KILL, seen(stopped=True, gone=True)), [KILLS, *KILLED], WELL),
    Case(
        "killed twice, seen twice",
        (*RUNNING, RUNNING[1], KILL, KILL, seen(stopped=True, gone=True), KILL, sees("TERMINATED", exit_code=0)),
        [*BEGINS, KILLS, *KILLED],
        WELL,
    ),
    Case(
        "failed before the kill came",
        (*RUNNING, sees("TERMINATED", "FAILED", exit_code=1, message="container exited"), KILL),
        [*BEGINS, *failed(CODE_1)],
        CODE_1,
    ),
    Case(
        "its node is lost",
        (*RUNNING, sees("TERMINATED", "NODE_LOST", message="node n is gone")),
        [*BEGINS, *failed(LOST, "allocation failed due to agent failure")],
        LOST,
    ),
    Case(
        "nothing of it is left when its launcher comes back",
        (*RUNNING, seen(gone=True)),
        [*BEGINS, *failed(NO_RESTORE, "allocation failed due to restore error")],
        NO_RESTORE,
    ),
]


class Recorded(OutboxBuffer):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def line(self, *, text: str, level: str = "INFO", **_: Any) -> None:  # type: ignore[override]
        self.lines.append(f"{level} {text}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_log_and_exit_status(case: Case) -> None:
    waits: dict[str, Any] = {} if case.assigned else {"state": "PENDING", "assigned_at": None}
    row = allocation(name=NAME, preemptible=False, **waits)
    out = Recorded()
    for number, step in enumerate(case.steps):
        assert exit_status(row) == ("" if row.state != "TERMINATED" else case.exit_status)
        take(row, step, number + 1, out)
    assert out.lines == list(case.lines)
    assert (row.state, exit_status(row)) == ("TERMINATED", case.exit_status)


def take(row: AllocationRow, step: Step, revision: int, out: OutboxBuffer) -> None:
    if isinstance(step, str):
        row.kill_reason = row.kill_reason or "user requested kill"
        follow_up(row, now=NOW, out=out)
    else:
        observe(row, msgspec.structs.replace(step, revision=revision), now=NOW, out=out)
