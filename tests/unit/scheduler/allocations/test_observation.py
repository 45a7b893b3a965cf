from __future__ import annotations

from typing import Any

import msgspec
import pytest

from libs.events.observations import AllocationObserved, ObservedPod
from libs.states.allocation import AllocationState
from services.scheduler.allocations.observation import observe, state_seen
from services.scheduler.allocations.termination import follow_up, kill, terminate
from services.scheduler.transactions.outbox_buffer import OutboxBuffer
from services.scheduler.transactions.rows import AllocationRow
from tests.harness import FakeClock
from tests.unit.scheduler.rows import allocation

NOW = FakeClock().now()


def seen(*states: str, revision: int = 1, **fields: Any) -> AllocationObserved:
    """``RUNNING``, ``TERMINATED:0`` and ``TERMINATED:1`` are pods, in rank order."""
    pods = []
    for rank, state in enumerate(states):
        name, _, code = state.partition(":")
        failure = "FAILED" if code not in ("", "0") else ""
        exit_code = int(code) if code else None
        pods.append(ObservedPod(name=f"p{rank}", state=name, exit_code=exit_code, failure=failure))  # type: ignore[arg-type]
    return AllocationObserved(allocation="1.x.1", pool="default", revision=revision, pods=tuple(pods), **fields)


class Recorded(OutboxBuffer):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.orders: list[str] = []

    def line(self, *, text: str, **_: Any) -> None:  # type: ignore[override]
        self.lines.append(text)

    def order(self, order: Any) -> None:
        self.orders.append(order.desired)

    def withdraw(self, pool: str, allocation: str) -> None:
        self.orders.append("withdrawn")


def watch(row: AllocationRow, *observations: AllocationObserved) -> Recorded:
    out = Recorded()
    for one in observations:
        observe(row, one, now=NOW, out=out)
    return out


@pytest.mark.parametrize(
    ("states", "num_pods", "expected"),
    [
        ([], 1, "ASSIGNED"),
        (["PULLING"], 1, "PULLING"),
        (["RUNNING"], 2, "ASSIGNED"),
        (["RUNNING", "STARTING"], 2, "STARTING"),
        (["RUNNING", "RUNNING"], 2, "RUNNING"),
        (["RUNNING", "TERMINATED:0"], 2, "TERMINATING"),
    ],
)
def test_allocation_is_as_far_as_its_last_pod(states: list[str], num_pods: int, expected: str) -> None:
    assert state_seen(seen(*states), num_pods) == AllocationState(expected)


@pytest.mark.parametrize(
    ("fields", "asked", "killed"),
    [
        ({"is_ready": True}, True, False),
        ({"is_ready": False}, False, True),
        ({"is_ready": True, "preemptible": False}, False, True),
    ],
    ids=["a ready trial checkpoints first", "one that is not ready cannot", "others never can"],
)
def test_a_pod_whose_place_the_cluster_wants_takes_its_allocation_along(
    fields: dict[str, Any], asked: bool, killed: bool
) -> None:
    row = allocation(**fields)
    wanted = seen("RUNNING", "RUNNING", revision=1)
    wanted = msgspec.structs.replace(
        wanted, pods=(wanted.pods[0], msgspec.structs.replace(wanted.pods[1], has_to_leave=True))
    )
    out = watch(row, wanted, msgspec.structs.replace(wanted, revision=2))
    assert (row.preempted_at is not None, row.killed_at is not None) == (asked, killed)
    assert (row.preempt_reason or row.kill_reason) == "preempted by the scheduler"
    assert len([line for line in out.lines if "preempted by the scheduler" in line]) == 1


def test_a_pod_that_has_left_asks_for_nothing() -> None:
    row = allocation()
    gone = seen("TERMINATED:0", "RUNNING")
    watch(
        row, msgspec.structs.replace(gone, pods=(msgspec.structs.replace(gone.pods[0], has_to_leave=True),), num_pods=2)
    )
    assert (row.preempted_at, row.killed_at) == (None, None)


def test_life_in_the_log() -> None:
    row = allocation()
    out = watch(
        row,
        seen("PULLING", revision=1),
        seen("RUNNING", revision=2),
        seen("RUNNING", revision=3),
        seen("TERMINATED:0", revision=4),
    )
    assert out.lines == [
        "Trial 1 (Experiment 1) was assigned to an agent",
        "Resources for Trial 1 (Experiment 1) have started",
        "resources exited successfully with a zero exit code",
        "Trial 1 (Experiment 1) ended by itself after 0s",
    ]
    assert out.orders == ["withdrawn"]
    assert row.start_time == row.end_time == row.released_at == NOW


def test_task_that_ended_before_it_was_seen_has_started_all_the_same() -> None:
    row = allocation()
    out = watch(row, seen("TERMINATED:1"))
    assert row.start_time == NOW
    assert out.lines[:3] == [
        "Trial 1 (Experiment 1) was assigned to an agent",
        "Resources for Trial 1 (Experiment 1) have started",
        "crashed: resources failed with non-zero exit code:  (exit code 1)",
    ]


def test_task_that_leaves_as_asked_may_do_so_with_any_exit_code() -> None:
    row = allocation(preempt_acked=True)
    out = watch(row, seen("TERMINATED:3"))
    assert out.lines[-2:] == [
        "crashed: resources failed with non-zero exit code:  (exit code 3)",
        "Trial 1 (Experiment 1) was terminated: allocation preempted after 0s",
    ]
    assert (row.exit_error, row.status_code) == (None, 3)


def test_what_could_not_be_made_says_why_before_it_says_that() -> None:
    row = allocation()
    out = watch(row, seen(failure="LAUNCH_ERROR", message='pods "a" is forbidden', gone=True))
    assert out.lines == [
        'pods "a" is forbidden',
        "crashed: task failed without an associated exit code: job crashed",
        "Trial 1 (Experiment 1) was terminated: allocation failed: task failed without an associated exit code: "
        'job crashed: pods "a" is forbidden',
    ]
    assert row.exit_error == "task failed without an associated exit code: job crashed"


@pytest.mark.parametrize(
    ("codes", "ending"),
    [(("TERMINATED:137",), " (exit code 137)"), (("TERMINATED:0",), "")],
    ids=["by a signal", "by itself"],
)
def test_what_was_killed_says_so_in_the_words_that_people_search_for(codes: tuple[str, ...], ending: str) -> None:
    row = allocation()
    out = watch(row, seen("RUNNING", revision=1))
    kill(row, reason="user requested kill", now=NOW, out=out)
    observe(row, seen(*codes, revision=2, stopped=True, gone=True), now=NOW, out=out)
    assert out.lines[-3:] == [
        "forcibly killing allocation's remaining resources (reason: user requested kill)",
        f"killed: resources failed with non-zero exit code: killed{ending}",
        "Trial 1 (Experiment 1) was terminated: allocation killed after 0s",
    ]
    assert (row.exit_error, row.exit_kind, row.status_code) == (None, "", None)


STARTED = "Resources for Trial 1 (Experiment 1) have started"


@pytest.mark.parametrize(
    ("num_pods", "steps"),
    [
        (1, [["RUNNING"], ["RUNNING"], ["TERMINATED:0"]]),
        (1, [["PULLING"], ["STARTING"], ["RUNNING"]]),
        (1, [["STARTING"], ["TERMINATED:1"], ["TERMINATED:1"]]),
        (2, [["RUNNING"], ["RUNNING", "STARTING"], ["RUNNING", "RUNNING"], ["TERMINATED", "TERMINATED:1"]]),
        (2, [["RUNNING", "RUNNING"], ["TERMINATED", "RUNNING"], ["TERMINATED", "TERMINATED:1"]]),
    ],
    ids=["seen twice", "step by step", "ended before it was seen", "a gang", "a gang of which one is lost"],
)
@pytest.mark.parametrize("state", ["ASSIGNED", "RUNNING", "WAITING"])
def test_that_all_have_started_is_said_once_whatever_the_task_said_before(
    num_pods: int, steps: list[list[str]], state: str
) -> None:
    row = allocation(num_pods=num_pods, state=state)
    observations = [seen(*pods, revision=number) for number, pods in enumerate(steps, start=1)]
    out = watch(row, *(one for one in observations for _ in range(2)))
    assert out.lines.count(STARTED) == 1


def test_what_never_ran_together_has_not_started() -> None:
    out = watch(allocation(num_pods=2), seen("TERMINATED", "STARTING", revision=1), seen(revision=2, gone=True))
    assert STARTED not in out.lines


def test_a_request_that_it_leaves_is_followed_once() -> None:
    out = Recorded()
    requested = {"preempt_reason": "preempted by the scheduler"}
    ready, young, fixed = (
        allocation(is_ready=True, **requested),
        allocation(**requested),
        allocation(is_ready=True, preemptible=False, **requested),
    )
    for row in (ready, young, fixed) * 2:
        follow_up(row, now=NOW, out=out)
    assert out.lines == [
        "gracefully terminating allocation's remaining resources (reason: preempted by the scheduler)",
        *["forcibly killing allocation's remaining resources (reason: preempted by the scheduler)"] * 2,
    ]
    assert [(row.preempted_at, row.killed_at) for row in (ready, young, fixed)] == [
        (NOW, None),
        (None, NOW),
        (None, NOW),
    ]
    assert ready.preempt_deadline is not None
    follow_up(ready, now=ready.preempt_deadline, out=out)
    assert (ready.killed_at, ready.kill_reason) == (ready.preempt_deadline, "allocation did not preempt in 0:01:00")


def test_nothing_is_due_for_what_nobody_wants_to_leave() -> None:
    out = Recorded()
    row = allocation(is_ready=True)
    follow_up(row, now=NOW, out=out)
    assert (out.lines, row.preempted_at, row.killed_at) == ([], None, None)


def test_old_news_changes_nothing() -> None:
    row = allocation()
    watch(row, seen("RUNNING", revision=5), seen("TERMINATED:1", revision=4), seen("PULLING", revision=5))
    assert (row.state, row.revision) == ("RUNNING", 5)


def test_state_is_never_less_than_what_the_task_said_of_itself() -> None:
    row = allocation(state="WAITING")
    watch(row, seen("RUNNING"))
    assert row.state == "WAITING"


def test_first_failed_pod_ends_its_siblings() -> None:
    row = allocation(num_pods=2)
    out = watch(row, seen("RUNNING", "TERMINATED:1", revision=1))
    assert out.orders == ["stop"]
    assert row.killed_while_running is False
    out = watch(row, seen("TERMINATED:143", "TERMINATED:1", revision=2, stopped=True))
    assert (row.exit_kind, row.status_code) == ("FAILED", 1)


def test_pod_that_ended_well_waits_for_its_siblings() -> None:
    row = allocation(num_pods=2)
    out = watch(row, seen("RUNNING", "TERMINATED:0"))
    assert (row.state, out.orders) == ("TERMINATING", [])


def test_terminate_asks_what_can_be_asked_and_kills_what_cannot() -> None:
    out = Recorded()
    ready = allocation(is_ready=True)
    terminate(ready, reason="pause", now=NOW, out=out)
    terminate(ready, reason="again", now=NOW, out=out)
    assert (ready.preempt_reason, ready.killed_at, out.orders) == ("pause", None, [])
    assert ready.preempt_deadline is not None
    assert (ready.preempt_deadline - NOW).total_seconds() == 60
    for row in (allocation(), allocation(is_ready=True, preemptible=False)):
        terminate(row, reason="pause", now=NOW, out=out)
        assert (row.preempted_at, row.killed_at, row.killed_while_running) == (None, NOW, True)
    assert out.orders == ["stop", "stop"]


def test_whether_a_kill_has_ended_what_exits_with_0_is_known_when_it_is_gone() -> None:
    """With Kubernetes pods show their exit codes before the launcher says whether they had ended by themselves."""
    for stopped, reason in ((True, "allocation killed"), (False, "allocation stopped early")):
        row = allocation()
        kill(row, reason="user requested kill", now=NOW, out=Recorded())
        watch(row, seen("TERMINATED:0", revision=1))
        assert (row.state, row.released_at) == ("TERMINATING", None)
        watch(row, seen("TERMINATED:0", revision=2, gone=True, stopped=stopped))
        assert row.exit_reason == f"{reason} after 0s"


def test_kill_of_what_waits_for_slots_needs_no_launcher() -> None:
    out = Recorded()
    row = allocation(state="PENDING", assigned_at=None)
    kill(row, reason="user requested kill", now=NOW, out=out)
    kill(row, reason="user requested kill", now=NOW, out=out)
    assert (row.state, row.exit_kind, row.released_at, out.orders) == ("TERMINATED", "", NOW, [])
    assert out.lines == ["Trial 1 (Experiment 1) was terminated: allocation aborted after 0s"]


def test_observation_of_what_never_got_slots_is_ignored() -> None:
    row = allocation(state="PENDING", assigned_at=None)
    watch(row, seen("RUNNING"))
    assert (row.state, row.revision) == ("PENDING", 0)
