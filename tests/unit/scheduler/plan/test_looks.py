"""How often a plan looks for room: once for requests that are alike, whosever they are, until something changes."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from services.scheduler.plan import planner
from services.scheduler.plan.forecast.replay import Replay
from services.scheduler.plan.planner import plan
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.room.occupancy import Occupancy
from services.scheduler.plan.snapshot import HeldAllocation, NodeSlots, PendingAllocation, PoolPolicy, PoolSnapshot
from tests.unit.load.simulate.running import job, run, starts
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


def test_of_the_plans_of_a_replay_that_of_now_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the scheduler's plan does. Under shares each plan that starts something would."""
    settled = _settled(monkeypatch)
    for looks_now, settles in enumerate((False, True)):
        settled.clear()
        replay = Replay(_shares(), lengths={}, ends={}, otherwise=timedelta(hours=1), settles=settles)
        assert replay.step()
        assert bool(settled) == bool(looks_now)
        settled.clear()
        while replay.step():
            pass
        assert len(replay.starts) == 4
        assert len({start.at for start in replay.starts.values()}) == 4
        assert not settled


def test_the_queue_of_a_simulation_looks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    settled = _settled(monkeypatch)
    plan(_shares())
    assert settled
    settled.clear()
    outcome = run("resolute-fair", [job(number, number, 100, slots=2, user=f"u{number}") for number in range(6)])
    assert None not in starts(outcome)
    assert not settled


def _settled(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often plans ask whether they have to look again."""
    asked: Counter[str] = Counter()
    monkeypatch.setattr(planner, "is_settled", _counted(planner.is_settled, "is_settled", asked))
    return asked


def _shares() -> PoolSnapshot:
    return PoolSnapshot(
        nodes=(NodeSlots(name="a", slots=2, max_aux=0),),
        pending=tuple(_request(number) for number in range(4)),
        policy=PoolPolicy(queue="fair_share"),
        now=START,
    )


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
