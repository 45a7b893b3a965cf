from __future__ import annotations

from datetime import timedelta
from operator import attrgetter
from typing import Any, NamedTuple

import pytest

from libs.events.observations import AllocationObserved, ObservedPod
from libs.states.allocation import GANG_TAKEN_BACK
from services.scheduler.allocations.exits import ExitKind, exit_record
from tests.harness import FakeClock
from tests.unit.scheduler.rows import allocation

NOW = FakeClock().now()


def pod(rank: int = 0, *, state: str = "TERMINATED", **fields: Any) -> ObservedPod:
    return ObservedPod(name=f"pod{rank}", state=state, **fields)  # type: ignore[arg-type]


OK = pod(exit_code=0)


class Case(NamedTuple):
    name: str
    row: dict[str, Any]
    seen: dict[str, Any]
    reason: str
    kind: str = ""
    error: str | None = None
    stopped_early: bool = False
    status: int | None = None
    explanation: str = ""


KILLED = {"killed_at": NOW, "killed_while_running": True}
CASES = [
    Case("killed by us, whatever it exits with", KILLED, {"pods": (pod(exit_code=137, failure="FAILED"),)},
         "allocation killed after 1m5s"),
    Case("killed by us when it was done, which nobody had heard", KILLED, {"gone": True, "pods": (OK,)},
         "allocation stopped early after 1m5s", stopped_early=True, status=0),
    Case("killed by us when all but one of its pods were done", {**KILLED, "num_pods": 2},
         {"gone": True, "pods": (OK,)}, "allocation killed after 1m5s"),
    Case("exit 0 after SIGTERM", KILLED, {"gone": True, "stopped": True, "pods": (OK,)},
         "allocation killed after 1m5s"),
    Case("stopped by an order", {}, {"stopped": True, "gone": True}, "allocation killed after 1m5s"),
    Case("acknowledged preemption, whatever it exits with", {"preempt_acked": True},
         {"pods": (pod(exit_code=1, failure="FAILED"),)}, "allocation preempted after 1m5s", status=1),
    Case("acknowledgement of what cannot be preempted means nothing", {"preempt_acked": True, "preemptible": False},
         {"pods": (OK,)}, "allocation stopped early after 1m5s", stopped_early=True, status=0),
    Case("exit 0", {}, {"pods": (OK,)}, "allocation stopped early after 1m5s", stopped_early=True, status=0),
    Case("exit 3", {}, {"pods": (pod(exit_code=3, failure="FAILED", message="boom"),)},
         "allocation failed: resources failed with non-zero exit code: boom (exit code 3)", "FAILED",
         "resources failed with non-zero exit code: boom (exit code 3)", status=3),
    Case("failed pod, then the rest killed", {"killed_at": NOW},
         {"stopped": True, "pods": (pod(exit_code=143, failure="FAILED"), pod(1, exit_code=2, failure="FAILED"))},
         "allocation failed: resources failed with non-zero exit code:  (exit code 2)", "FAILED",
         "resources failed with non-zero exit code:  (exit code 2)", status=2),
    Case("a lost node explains the failures of its siblings", {},
         {"pods": (pod(exit_code=1, failure="FAILED"), pod(1, failure="NODE_LOST", message="n1"))},
         "allocation failed due to agent failure: agent failed while the container was running: n1", "TRANSIENT",
         "agent failed while the container was running: n1"),
    Case("what ended because of another pod explains nothing", {},
         {"pods": (pod(failure="DELETED", message="because of 1", is_consequence=True),
                   pod(1, failure="DELETED", message="deleted"))},
         "allocation failed: resources failed with non-zero exit code: deleted", "FAILED",
         "resources failed with non-zero exit code: deleted"),
    Case("a gang that was taken back", {**KILLED, "kill_reason": f"{GANG_TAKEN_BACK}: 1 of 2"},
         {"stopped": True, "pods": (pod(exit_code=143, failure="FAILED"), pod(1, failure="DELETED"))},
         "allocation aborted after 1m5s: not all of its pods found a place: 1 of 2", "TRANSIENT"),
    Case("a gang of which one has failed before it was taken back",
         {"killed_at": NOW, "kill_reason": f"{GANG_TAKEN_BACK}: 1 of 2"},
         {"gone": True, "pods": (pod(exit_code=3, failure="FAILED"),)},
         "allocation failed: resources failed with non-zero exit code:  (exit code 3)", "FAILED",
         "resources failed with non-zero exit code:  (exit code 3)", status=3),
    Case("aborted before start", {}, {"pods": (pod(failure="ABORTED"),)},
         "allocation aborted: resources was aborted before it started", "TRANSIENT",
         "resources was aborted before it started"),
    Case("image cannot be pulled", {}, {"pods": (pod(failure="IMAGE_PULL", message="no such image"),)},
         "allocation failed: resources failed with non-zero exit code: no such image", "FAILED",
         "resources failed with non-zero exit code: no such image"),
    Case("pod deleted by somebody", {}, {"pods": (pod(failure="DELETED"),)},
         "allocation failed: resources failed with non-zero exit code", "FAILED",
         "resources failed with non-zero exit code"),
    Case("pod that vanished", {}, {"pods": (pod(failure="DELETED", vanished=True, message="pod a deleted"),)},
         "allocation failed: task failed without an associated exit code: pod a deleted", "FAILED",
         "task failed without an associated exit code: pod a deleted"),
    Case("Job deleted by somebody", {}, {"failure": "DELETED", "message": "job was deleted", "gone": True},
         "allocation failed: resources failed with non-zero exit code: job was deleted", "FAILED",
         "resources failed with non-zero exit code: job was deleted"),
    Case("objects refused", {}, {"failure": "LAUNCH_ERROR", "message": "quota"},
         "allocation failed: task failed without an associated exit code: job crashed: quota", "FAILED",
         "task failed without an associated exit code: job crashed", explanation="quota"),
    Case("objects refused, in the words of launchers of before", {},
         {"failure": "LAUNCH_ERROR", "message": "job crashed: quota"},
         "allocation failed: task failed without an associated exit code: job crashed: quota", "FAILED",
         "task failed without an associated exit code: job crashed", explanation="quota"),
    Case("container that can never start", {}, {"pods": (pod(failure="LAUNCH_ERROR", message="no such Secret"),)},
         "allocation failed: task failed without an associated exit code: no such Secret", "FAILED",
         "task failed without an associated exit code: no such Secret"),
    Case("vanished", {"pods": [{"name": "p", "state": "RUNNING"}]}, {"gone": True},
         "allocation failed due to restore error: RM failed to restore the allocation", "TRANSIENT",
         "RM failed to restore the allocation"),
    Case("gone after it was seen to end", {"pods": [{"name": "p", "state": "TERMINATED", "exit_code": 0}]},
         {"gone": True}, "allocation stopped early after 1m5s", stopped_early=True, status=0),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_exit_record(case: Case) -> None:
    started = NOW - timedelta(seconds=65)
    row = allocation(assigned_at=started, start_time=started, **case.row)
    seen = AllocationObserved(allocation=row.allocation_id, pool="default", revision=1, **case.seen)
    record = exit_record(row, seen, NOW)
    assert record.reason == case.reason
    assert (record.kind, record.error) == (ExitKind(case.kind), case.error)
    assert (record.stopped_early, record.status_code) == (case.stopped_early, case.status)
    assert record.explanation == case.explanation
