"""What nodes offer to pods that need not be alike, compared with a look at every node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.cluster.pod_sizes import usable_slots
from services.scheduler.plan.nodes.amounts import Amounts, amounts
from services.scheduler.plan.room.demand import Demand
from services.scheduler.plan.room.lifetimes import prolonged
from services.scheduler.plan.room.offers import NodeOffer, NodeOffers
from services.scheduler.plan.room.placing import place_pods
from services.scheduler.plan.room.room import Room, hash_of
from services.scheduler.plan.snapshot import FittingPolicy

SIZES = st.sampled_from(((8, 8), (8, 7), (8, 3), (8, 0), (8, -1), (6, 6), (6, 3), (4, 4), (4, 2)))
"""Units of a node, and how many are left."""


@given(st.data())
def test_offers_are_those_of_all_nodes_in_order(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(SIZES, max_size=9))
    total = {f"n{number}": size for number, (size, _) in enumerate(sizes)}
    left = {f"n{number}": free for number, (_, free) in enumerate(sizes)}
    cores = {node: data.draw(st.sampled_from((0, 1, 2, 9))) for node in total}
    groups = {node: data.draw(st.sampled_from((0, 1))) for node in total}
    fitting: FittingPolicy = data.draw(st.sampled_from(("best", "worst")))
    most = data.draw(st.integers(1, 8))
    demand = Demand(
        units=1,
        pods=data.draw(st.integers(1, 20)),
        most=most,
        excluded=data.draw(st.frozensets(st.sampled_from(sorted(total) or ["n0"]), max_size=2)),
        groups=data.draw(st.sampled_from((None, frozenset({1})))),
        requests=data.draw(st.sampled_from(((), amounts({"cpu": 1})))),
    )
    if demand.groups is not None:
        demand.nodes = frozenset(node for node, group in groups.items() if group == 1)

    def fits(node: str, _requests: Amounts, _given: Any = None) -> int:
        return cores[node]

    room = Room(left, total, fitting, groups, fits)
    offers = NodeOffers(room, demand, "a", 0)
    expected = sorted(_offers(demand, left, total, cores, worst=fitting == "worst"))
    assert list(offers) == expected
    taken = data.draw(st.frozensets(st.sampled_from(sorted(total) or ["n0"]), max_size=3))
    slots = data.draw(st.integers(1, most))
    others = [one for one in expected if one.node not in taken and one.slots >= slots]
    best = min(((one.score, one.longer, one.in_use, one.distance, one.node) for one in others), default=None)
    assert offers.best_for(slots, taken) == (None if best is None else best[4])


def _offers(
    demand: Demand, left: dict[str, int], total: dict[str, int], cores: dict[str, int], *, worst: bool
) -> Iterable[NodeOffer]:
    for node, free in left.items():
        if free < 1 or not demand.allows(node):
            continue
        places = usable_slots(free, demand.most)
        if demand.requests:
            places = min(places, cores[node] * demand.most)
        if places:
            slots = min(places, demand.most)
            distance = (hash_of("a") - hash_of(node)) % (1 << 64)
            score = -free / total[node] if worst else free
            yield NodeOffer(-slots, score, prolonged(0, 0), (), distance, node, places // slots)


def test_of_many_nodes_a_few_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    look = Room.pods_on

    def counting(*args: Any) -> int:
        nonlocal looks
        looks += 1
        return look(*args)

    monkeypatch.setattr(Room, "pods_on", counting)
    left = {f"n{number}": number % 8 + 1 for number in range(1000)}
    demand = Demand(units=1, pods=67, most=8)
    places = place_pods(Room(left, dict.fromkeys(left, 8), "best"), demand, "a", (1,) * 67)
    assert [place.slots for place in places or ()] == [8] * 8 + [3]
    assert looks < 20
