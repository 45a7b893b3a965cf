"""What the pods are for which a pool grows, where the request is one that plans divide."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from services.scheduler.plan.decisions import Grow
from services.scheduler.plan.growth.dividing import as_asked_for, in_equal_pods, needs_of_pods
from services.scheduler.plan.nodes.amounts import amounts
from services.scheduler.plan.nodes.requirements import PodRequirements, SlotResource
from services.scheduler.plan.snapshot import EPOCH, Growing, PendingAllocation, Placement

GPU = SlotResource("nvidia.com/gpu")
NEEDS = PodRequirements(requests=amounts({"cpu": 4000, GPU.name: 1}), slot=GPU)
UNTIL = datetime(2030, 1, 1, tzinfo=UTC)


def _request(slots: int, most: int, *, needs: PodRequirements | None = NEEDS) -> PendingAllocation:
    return PendingAllocation(
        allocation="x",
        job="x",
        pods=(1,) * slots,
        most_per_pod=most,
        priority=42,
        submitted_at=EPOCH,
        requested_at=EPOCH,
        needs=needs,
    )


def _asked(pods: int, held: int = 0, slots: int = 8) -> Growing:
    places = tuple(Placement(f"n{number}", slots) for number in range(held))
    return Growing(
        allocation="x", pods=pods, nodes=pods, node_slots=8, gives_up_at=UNTIL, known_nodes=frozenset(), places=places
    )


@pytest.mark.parametrize(
    ("slots", "most", "node", "sizes"),
    [(16, 8, 8, [8, 4]), (12, 8, 8, [6, 4]), (16, 8, 6, [4]), (13, 8, 8, []), (16, 8, 0, [])],
)
def test_its_pods_are_of_one_size_that_a_node_takes(slots: int, most: int, node: int, sizes: list[int]) -> None:
    found = list(in_equal_pods(_request(slots, most), node))
    assert [one.pods for one in found] == [(size,) * (slots // size) for size in sizes]
    assert not any(one.most_per_pod for one in found)
    assert all(one.slots == slots for one in found)


@pytest.mark.parametrize(
    ("asked", "pods"),
    [
        pytest.param(_asked(2), (8, 8), id="all of them"),
        pytest.param(_asked(1, held=1), (8, 8), id="beside one that is held"),
        pytest.param(_asked(4), (4,) * 4, id="smaller ones"),
        pytest.param(_asked(1), None, id="larger than they may be by now"),
        pytest.param(_asked(3, held=1, slots=4), (4,) * 4, id="several beside one"),
        pytest.param(_asked(2, held=1, slots=4), None, id="not of one size"),
    ],
)
def test_what_was_asked_for_says_how_large_its_pods_are(asked: Growing, pods: tuple[int, ...] | None) -> None:
    found = as_asked_for(_request(16, 8), asked)
    assert (None if found is None else found.pods) == pods


@pytest.mark.parametrize(("pods", "gpus"), [(2, 8), (4, 4)])
def test_placeholders_ask_for_the_slots_of_a_pod(pods: int, gpus: int) -> None:
    asked = Grow(allocation="x", pods=pods, nodes=pods, node_slots=8, gives_up_at=UNTIL, known_nodes=frozenset())
    found = needs_of_pods(_request(16, 8), asked)
    assert found is not None
    assert dict(found.requests) == {"cpu": 4000, GPU.name: gpus}
    assert needs_of_pods(_request(16, 8, needs=None), asked) is None
