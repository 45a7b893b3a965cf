"""Of the estimates in several pools people are told the first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.forecast.several_pools import PoolEstimates, with_other_pools, without_early
from services.scheduler.plan.forecast.estimates import Ahead, StartEstimate
from services.scheduler.plan.snapshot import EPOCH, PendingAllocation, PoolSnapshot

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def _after(minutes: int | None) -> datetime | None:
    return None if minutes is None else NOW + timedelta(minutes=minutes)


def _estimate(minutes: int | None, basis: str = "why", *, jobs: int = 3) -> StartEstimate:
    return StartEstimate(allocation="a", at=_after(minutes), basis=basis, ahead=Ahead(jobs, 8))


def test_it_is_told_of_the_pool_that_is_first_and_of_its_own_queue() -> None:
    own = PoolEstimates("spot", NOW, own=(_estimate(90, "own"),))
    reserved = PoolEstimates("reserved", NOW, guests=(_estimate(60, "there is room for it then", jobs=0),))
    other = PoolEstimates("other", NOW, guests=(_estimate(70, "later"),))
    [found] = with_other_pools(own, (own, other, reserved))
    assert found == _estimate(60, "in resource pool reserved: there is room for it then")
    assert with_other_pools(reserved, (own, reserved)) == (), "it has one estimate"


_MINUTES = st.none() | st.integers(-2, 300)


@given(st.none() | st.integers(0, 300), st.lists(_MINUTES, max_size=3))
def test_it_is_the_first_of_all_and_never_in_the_past(own: int | None, elsewhere: list[int | None]) -> None:
    """Other pools may have been looked at some moments before."""
    mine = PoolEstimates("p", NOW, own=(_estimate(own),))
    others = [PoolEstimates(f"q{i}", NOW, guests=(_estimate(minutes),)) for i, minutes in enumerate(elsewhere)]
    [found] = with_other_pools(mine, [*others, mine])
    known = [max(minutes, 0) for minutes in (own, *elsewhere) if minutes is not None]
    assert found.at == _after(min(known, default=None))
    assert ("in resource pool" in found.basis) is (found.at != _after(own))


def test_who_is_expected_to_start_before_it_may_is_not_in_the_queue() -> None:
    pool = PoolSnapshot(nodes=(), pending=tuple(_guest(name) for name in ("early", "late", "there", "unknown")))
    expected = {"early": NOW + timedelta(minutes=10), "late": NOW + timedelta(minutes=50)}
    expected["there"] = NOW + timedelta(minutes=30)
    assert [one.allocation for one in without_early(pool, expected).pending] == ["late", "there", "unknown"]
    own = PoolSnapshot(nodes=(), pending=(_guest("early", waits=False),))
    assert without_early(own, expected) is own


def _guest(name: str, *, waits: bool = True) -> PendingAllocation:
    return PendingAllocation(
        allocation=name,
        job=name,
        pods=(1,),
        priority=42,
        submitted_at=EPOCH,
        requested_at=EPOCH,
        not_before=NOW + timedelta(minutes=30) if waits else None,
    )
