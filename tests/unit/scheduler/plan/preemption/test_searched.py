"""Searches for what may be moved: not made again as long as nothing has changed, so that others are searched for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given

from services.scheduler.plan.planner import plan
from services.scheduler.plan.preemption import consolidation, movers
from services.scheduler.plan.preemption.searched import SEARCHED_AGAIN_AFTER, SearchMemo
from services.scheduler.plan.snapshot import PoolSnapshot
from tests.scenarios.queue.notation import Case, snapshot
from tests.unit.scheduler.plan.preemption.test_moves import scattered

NODES = tuple(f"n{number}" for number in range(8))
HELD = "; ".join(f"x{node} 4@{node} np; y{node} 2@{node} mv saved 60" for node in NODES)
IN_VAIN = "; ".join(f"p{slots} {slots} since {20 - slots}" for slots in (5, 6, 7, 8))


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Slots of the pods that others were to be moved for."""
    found: list[int] = []
    search = movers.cheapest

    def counting(*args: Any) -> Any:
        found.append(args[1].units)
        return search(*args)

    monkeypatch.setattr(consolidation, "cheapest", counting)
    return found


def test_what_was_searched_in_vain_is_not_searched_again(searches: list[int]) -> None:
    memo = SearchMemo()
    for _ in range(3):
        plan(_pool(IN_VAIN), None, memo)
    assert sorted(searches) == [5, 6, 7, 8]


def test_what_a_plan_leaves_undone_the_next_one_does(searches: list[int]) -> None:
    memo, pool = SearchMemo(), _pool(f"{IN_VAIN}; last 4")
    assert not plan(pool, None, memo).moved
    assert 4 not in searches
    assert [move.makes_room_for for move in plan(pool, None, memo).moved] == ["last"]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"moves_left": 9}, id="more may be moved"),
        pytest.param({"later": SEARCHED_AGAIN_AFTER}, id="some time has passed"),
        pytest.param({"held": 1}, id="something has ended"),
        pytest.param({"nodes": 1}, id="a node is gone"),
    ],
)
def test_it_is_searched_again_when(changes: dict[str, Any], searches: list[int]) -> None:
    memo, pool = SearchMemo(), _pool(IN_VAIN)
    plan(pool, None, memo)
    searches.clear()
    plan(_changed(pool, **changes), None, memo)
    assert sorted(searches) == [5, 6, 7, 8]


@given(scattered())
def test_without_a_change_the_plan_is_the_same(pool: PoolSnapshot) -> None:
    """But for those that the first plan had no time for."""
    memo = SearchMemo()
    first = plan(pool, None, memo)
    assert first == plan(pool)
    again = plan(pool, None, memo)
    assert set(first.moved) <= set(again.moved)


def _pool(pending: str) -> PoolSnapshot:
    return snapshot(Case("", dict.fromkeys(NODES, 8), f"{HELD}; {pending}", moves_left=5))


def _changed(
    pool: PoolSnapshot, *, moves_left: int = 5, later: timedelta = timedelta(), held: int = 0, nodes: int = 0
) -> PoolSnapshot:
    return msgspec.structs.replace(
        pool,
        moves_left=moves_left,
        now=pool.now + later,
        held=pool.held[: len(pool.held) - held],
        nodes=(pool.nodes or ())[nodes:],
    )
