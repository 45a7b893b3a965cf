"""Reservations where more than units is asked for: as if every node were looked at, but few are."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from services.scheduler.plan.room.reservations import NodeReservation, Others, reserve
from services.scheduler.plan.room.room import hash_of
from services.scheduler.plan.snapshot import NEVER, Placement
from tests.unit.scheduler.plan.test_plan_properties import NOW

MOMENTS = st.sampled_from((NOW, NOW + timedelta(hours=1), NOW + timedelta(hours=2), NEVER))


@given(st.data())
def test_it_is_that_of_a_look_at_every_node(data: st.DataObject) -> None:
    need, pods = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    nodes = [f"n{number}" for number in range(data.draw(st.integers(0, 6)))]
    holders = {node: data.draw(st.lists(st.tuples(MOMENTS, st.integers(1, 3)), max_size=3)) for node in nodes}
    free = {node: data.draw(st.integers(0, 4)) for node in nodes}
    total = {node: free[node] + sum(units for _, units in holders[node]) for node in nodes}
    most = {node: data.draw(st.integers(0, 3)) for node in nodes}
    others_at = {node: sorted(data.draw(st.lists(MOMENTS, min_size=9, max_size=9))) for node in nodes}

    def free_at(node: str, count: int) -> datetime:
        return others_at[node][count]

    found = reserve(
        need=need, pods=pods, free=free, total=total, holders=holders, others=Others(most.__getitem__, free_at)
    )
    places: list[tuple[datetime, int, int, str]] = []
    for node in nodes:
        for count in range(1, min(total[node] // need, pods, most[node]) + 1):
            left, at = free[node], NOW
            for ends_at, units in sorted(holders[node]):
                if left < count * need:
                    left, at = left + units, max(at, ends_at)
            at = NEVER if at == NEVER else max(at, free_at(node, count))
            places.append((at, max(count * need - free[node], 0), hash_of(node), node))
    assert _summed(found) == _expected(sorted(places), pods, need)


def _expected(
    places: list[tuple[datetime, int, int, str]], pods: int, need: int
) -> tuple[datetime, dict[str, int]] | None:
    if len(places) < pods:
        return None
    until = places[pods - 1][0]
    if until != NEVER:
        places = sorted((place for place in places if place[0] <= until), key=lambda place: place[1:])
    units: dict[str, int] = {}
    for place in places[:pods]:
        units[place[3]] = units.get(place[3], 0) + need
    return until, units


def _summed(found: NodeReservation | None) -> tuple[datetime, dict[str, int]] | None:
    return None if found is None else (found.until, {place.node: place.slots for place in found.places})


def test_nodes_that_come_free_later_are_not_looked_at() -> None:
    seen: list[str] = []

    def free_at(node: str, _count: int) -> datetime:
        seen.append(node)
        return NOW

    hours = {f"n{number:03}": number for number in range(1, 500)}
    found = reserve(
        need=4,
        pods=2,
        free={},
        total=dict.fromkeys(hours, 4),
        holders={node: [(NOW + timedelta(hours=hour), 4)] for node, hour in hours.items()},
        others=Others(lambda _node: 1, free_at),
    )
    assert found is not None
    assert found.places == (Placement("n001", 4), Placement("n002", 4))
    assert seen == ["n001", "n002"]
