"""Gangs of which not every pod finds a node."""

from __future__ import annotations

from operator import attrgetter

import pytest
from msgspec import Struct

from services.launcher.backends.kubernetes.client.objects import Pod
from tests.unit.launcher.backends.kubernetes.builders import T0, observation, pod, run, running, view

NO_ROOM = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
}
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}


def unbound(name: str, **fields: str) -> Pod:
    return pod(name, conditions=[NO_ROOM], **fields)


class Case(Struct, frozen=True, kw_only=True):
    name: str
    pods: tuple[Pod, ...]
    num_pods: int = 2
    said: str = ""


SAID = "Unschedulable: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu."
CASES = [
    Case(name="half", pods=(running("a"), unbound("b")), said=f"1 of 2 within 60 seconds; {SAID}"),
    Case(name="none", pods=(unbound("a"), unbound("b")), said=f"0 of 2 within 60 seconds; {SAID}"),
    Case(name="pods that could not be made", pods=(running("a"),), num_pods=3, said="1 of 3 within 60 seconds"),
    Case(name="all of them", pods=(running("a"), running("b", node="n2"))),
    Case(name="a single pod waits as long as it likes", pods=(unbound("a"),), num_pods=1),
    Case(name="nothing was made yet", pods=()),
    Case(name="a scheduler of gangs holds it back", pods=(unbound("a", scheduler="coscheduler"), unbound("b"))),
    Case(name="gates hold it back", pods=(pod("a", conditions=[GATED]), pod("b", conditions=[GATED]))),
    Case(
        name="another scheduler has placed half of it",
        pods=(running("a", scheduler="coscheduler"), unbound("b", scheduler="coscheduler")),
        said=f"1 of 2 within 60 seconds; {SAID}",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_what_is_said_when_its_time_is_over(case: Case) -> None:
    found = run(*case.pods, num_pods=case.num_pods)
    assert observation(found, view(T0 + 59)).unplaced == ""
    assert observation(found, view(T0 + 60)).unplaced == case.said


@pytest.mark.parametrize(
    "held", [unbound("b", scheduler="coscheduler"), pod("b", conditions=[GATED])], ids=["", "gate"]
)
def test_what_was_held_back_has_its_time_from_when_it_is_let_go(held: Pod) -> None:
    found = run(unbound("a"), held, num_pods=2)
    later = view(T0 + 1000)
    found.observed.on_pod(running("a"), intent=found.intent, view=later)
    assert observation(found, view(T0 + 1059)).unplaced == ""
    assert observation(found, view(T0 + 1060)).unplaced.startswith("1 of 2 within 60 seconds")


def test_it_is_looked_at_again_just_when_its_time_is_over() -> None:
    found = run(running("a"), unbound("b"), num_pods=2)
    assert found.refresh(view(T0 + 1)).next_change == T0 + 60
    assert found.refresh(view(T0 + 61)).next_change is None


def test_a_gang_that_became_whole_late_or_is_being_stopped_is_left_alone() -> None:
    late = run(running("a"), unbound("b"), running("b", node="n2"), num_pods=2)
    assert observation(late, view(T0 + 100)).unplaced == ""
    stopped = run(running("a"), unbound("b"), num_pods=2)
    stopped.request_stop(ordered=True, deadline=T0 + 200)
    assert observation(stopped, view(T0 + 100)).unplaced == ""
