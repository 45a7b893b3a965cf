"""What was written down about an allocation is reported as an observation, with or without a supervisor."""

from __future__ import annotations

import pytest

from libs.events.orders import Order
from services.launcher.backends.process.observations import (
    LOST,
    awaits_delivery,
    observed,
    status_without_supervisor,
)
from services.launcher.backends.process.records import Assignment, ProcessPodStatus, StatusRecord, StopRecord

ASSIGNMENT = Assignment(
    order=Order(allocation="a.1", pool="p", desired="run"), pods=("x", "y"), devices=(("000",), ("001",))
)
RUNNING = ProcessPodStatus(state="RUNNING")
DONE = ProcessPodStatus(state="TERMINATED", exit_code=0)


def test_pods_of_which_nothing_is_known_have_begun() -> None:
    seen = observed(ASSIGNMENT, None, begun="PULLING", node="n", address="addr")
    assert [(pod.name, pod.state, pod.devices, pod.node) for pod in seen.pods] == [
        ("x", "PULLING", ("000",), "n"),
        ("y", "PULLING", ("001",), "n"),
    ]
    assert not seen.gone


def test_an_end_is_told_after_the_last_lines() -> None:
    status = StatusRecord(pods=(DONE, DONE), stopped=False, ended=True)
    seen = observed(ASSIGNMENT, status, begun="PULLING", node="n", address="addr", undelivered={1})
    assert [(pod.state, pod.exit_code) for pod in seen.pods] == [("TERMINATED", 0), ("RUNNING", None)]
    assert not seen.gone
    assert observed(ASSIGNMENT, status, begun="PULLING", node="n", address="addr").gone


AWAITING = [
    ("came to its own end", StatusRecord(pods=(DONE, RUNNING), stopped=False, ended=False), True),
    ("runs", StatusRecord(pods=(RUNNING, DONE), stopped=False, ended=False), False),
    ("was stopped", StatusRecord(pods=(DONE, DONE), stopped=True, ended=True), False),
    ("was lost", StatusRecord(pods=(LOST, DONE), stopped=False, ended=True), False),
    ("nothing is known", None, False),
]


@pytest.mark.parametrize(("status", "awaits"), [case[1:] for case in AWAITING], ids=[case[0] for case in AWAITING])
def test_who_is_waited_for(status: StatusRecord | None, awaits: bool) -> None:
    assert awaits_delivery(status, 0) is awaits


@pytest.mark.parametrize(
    ("status", "stop", "failures", "stopped"),
    [
        (None, None, ["ABORTED", "ABORTED"], False),
        (None, StopRecord(deadline=0, ordered=True), ["ABORTED", "ABORTED"], True),
        (
            StatusRecord(pods=(RUNNING, RUNNING), stopped=False, ended=False),
            None,
            ["NODE_LOST", "NODE_LOST"],
            False,
        ),
        (StatusRecord(pods=(DONE, RUNNING), stopped=False, ended=False), None, ["", "NODE_LOST"], False),
        (
            StatusRecord(pods=(RUNNING, RUNNING), stopped=False, ended=False),
            StopRecord(deadline=0, ordered=True),
            ["NODE_LOST", "NODE_LOST"],
            True,
        ),
        (
            StatusRecord(pods=(DONE, RUNNING), stopped=False, ended=False),
            StopRecord(deadline=0, ordered=True),
            ["", "NODE_LOST"],
            False,
        ),
    ],
)
def test_end_without_a_supervisor(
    status: StatusRecord | None, stop: StopRecord | None, failures: list[str], stopped: bool
) -> None:
    found = status_without_supervisor(ASSIGNMENT, status, stop, "Traceback")
    assert [pod.failure for pod in found.pods] == failures
    assert (found.stopped, found.ended) == (stopped, True)
