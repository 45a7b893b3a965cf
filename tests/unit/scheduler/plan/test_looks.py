"""How often a plan looks for room: once for requests that are alike, whosever they are, until something changes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from services.scheduler.plan.planner import plan
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.room.occupancy import Occupancy
from services.scheduler.plan.snapshot import HeldAllocation, NodeSlots, PendingAllocation, PoolPolicy, PoolSnapshot
from tests.unit.scheduler.plan.test_plan_properties import START

JOBS = 200
LOOKS = ("start", "has_room_later", "has_free_room", "find_reservation")


@pytest.mark.parametrize("queue", ["fair_share", "round_robin"])
def test_of_requests_that_are_alike_one_looks_for_room(queue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each job is a share, so each of them is looked at."""
    looks: Counter[str] = Counter()
    for name in LOOKS:
        monkeypatch.setattr(Occupancy, name, _counted(getattr(Occupancy, name), name, looks))
    pending = tuple(_request(number) for number in range(JOBS))
    held = HeldAllocation(allocation="h", job="h", pods=(("a", 4),))
    pool = PoolSnapshot(
        nodes=(NodeSlots(name="a", slots=4, max_aux=0), NodeSlots(name="b", slots=1, max_aux=0)),
        held=(held,),
        pending=pending,
        policy=PoolPolicy(queue=queue),
    )
    made = plan(pool)
    assert sorted(wait.allocation for wait in made.waits) == sorted(one.allocation for one in pending)
    assert {wait.reason for wait in made.waits} == {WaitReason.NO_ROOM}
    assert looks.total() < 20


def _counted(method: Any, name: str, looks: Counter[str]) -> Any:
    def counting(*args: Any, **kwargs: Any) -> Any:
        looks[name] += 1
        return method(*args, **kwargs)

    return counting


def _request(number: int) -> PendingAllocation:
    return PendingAllocation(
        allocation=f"p{number:03}",
        job=f"j{number:03}",
        pods=(2,),
        priority=42,
        submitted_at=START,
        requested_at=START,
    )
