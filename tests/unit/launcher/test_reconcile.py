"""Every pair of order and existence, and what follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.events.orders import Order
from services.launcher.reconcile import Existence, RemoveStep, ReportGoneStep, StartStep, Step, StopStep, steps

ABANDONED, LIVE, ENDED = Existence.ABANDONED, Existence.LIVE, Existence.ENDED


def order(desired: Literal["run", "stop"], allocation: str = "a.1", grace_s: float = 5.0) -> Order:
    return Order(allocation=allocation, pool="p", desired=desired, grace_s=grace_s)


RUN, STOP = order("run"), order("stop")


class Case(NamedTuple):
    name: str
    order: Order | None
    existence: Existence | None
    expected: Sequence[Step]
    untouchable: bool = False


CASES = [
    Case("ordered and not there: start", RUN, None, [StartStep(RUN)]),
    Case("ordered and running: nothing", RUN, LIVE, []),
    Case("ordered and over: nothing, it is not run twice", RUN, ENDED, []),
    Case("ordered and left half made: start, which makes the rest", RUN, ABANDONED, [StartStep(RUN)]),
    Case("to stop and left half made: stop", STOP, ABANDONED, [StopStep("a.1", 5.0)]),
    Case("no order and left half made: stop", None, ABANDONED, [StopStep("a.1", 15.0, ordered=False)]),
    Case("order missing for now and left half made: nothing", None, ABANDONED, [], untouchable=True),
    Case("to stop and running: stop with the order's grace", STOP, LIVE, [StopStep("a.1", 5.0)]),
    Case("to stop and over: nothing", STOP, ENDED, []),
    Case("to stop and never there: say so", STOP, None, [ReportGoneStep(STOP)]),
    Case("no order and running: stop", None, LIVE, [StopStep("a.1", 15.0, ordered=False)]),
    Case("no order and over: remove", None, ENDED, [RemoveStep("a.1")]),
    Case("order missing for now and running: nothing", None, LIVE, [], untouchable=True),
    Case("order missing for now and over: nothing", None, ENDED, [], untouchable=True),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_steps_follow_from_order_and_existence(case: Case) -> None:
    orders = {"a.1": case.order} if case.order else {}
    existing = {"a.1": case.existence} if case.existence else {}
    assert list(steps(orders, existing, {"a.1"} if case.untouchable else ())) == list(case.expected)


def test_stops_come_first() -> None:
    orders = {"a.1": order("run", "a.1"), "b.1": order("stop", "b.1")}
    assert [type(step) for step in steps(orders, {"b.1": LIVE})] == [StopStep, StartStep]


ALLOCATIONS = st.sampled_from(["a.1", "b.1", "c.1"])


@given(
    st.dictionaries(ALLOCATIONS, st.sampled_from(["run", "stop"])),
    st.dictionaries(ALLOCATIONS, st.sampled_from(list(Existence))),
)
def test_taking_the_steps_leads_to_a_state_without_steps(
    desired: dict[str, Literal["run", "stop"]], existing: dict[str, Existence]
) -> None:
    orders = {allocation: order(what, allocation) for allocation, what in desired.items()}
    for _ in range(3):
        for step in steps(orders, existing):
            match step:
                case StartStep():
                    existing[step.allocation] = LIVE
                case StopStep():
                    existing[step.allocation] = ENDED
                case RemoveStep():
                    del existing[step.allocation]
    assert all(isinstance(step, ReportGoneStep) for step in steps(orders, existing))
    assert existing.keys() <= orders.keys()
    assert {allocation for allocation in orders if desired[allocation] == "run"} <= existing.keys()
