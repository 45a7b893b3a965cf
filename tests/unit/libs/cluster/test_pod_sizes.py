"""Into which pods slots are divided, and which numbers of slots a pool takes."""

from __future__ import annotations

import pytest

from libs.cluster.config import ClusterConfig, PoolConfig, ResourceManagerConfig, SchedulerConfig
from libs.cluster.pod_sizes import equal_sizes, slots_for, usable_slots
from libs.cluster.resolution import PodSplit, could_fit, split_in_pool, split_slots
from libs.errors import InvalidRequest
from libs.events.capacity import Device, NodeCapacity, PoolCapacity


@pytest.mark.parametrize(
    ("slots", "most", "expected"),
    [
        (6, 4, (3, 2)),
        (8, 8, (8, 4)),
        (16, 8, (8, 4)),
        (7, 4, ()),
        (12, 8, (6, 4)),
        (3, 1, (1,)),
        (9, 8, ()),
        (6, 0, ()),
    ],
)
def test_sizes_of_equal_pods(slots: int, most: int, expected: tuple[int, ...]) -> None:
    assert equal_sizes(slots, most) == expected


@pytest.mark.parametrize(("free", "most", "expected"), [(3, 4, 3), (4, 4, 4), (7, 4, 4), (8, 4, 8), (0, 4, 0)])
def test_usable_slots_of_a_node(free: int, most: int, expected: int) -> None:
    assert usable_slots(free, most) == expected


@pytest.mark.parametrize("most", [1, 3, 4])
def test_slots_that_have_to_be_free(most: int) -> None:
    for used in range(20):
        assert slots_for(used, most) == next(free for free in range(40) if usable_slots(free, most) >= used)


def test_what_is_divided_needs_no_multiple() -> None:
    assert split_slots(13, 8, divides=True) == PodSplit(2, 8, 13)
    assert split_slots(16, 8, divides=True) == PodSplit(2, 8, 16)
    assert split_slots(8, 8, divides=True) == PodSplit(1, 8)
    with pytest.raises(InvalidRequest, match="multiple"):
        split_slots(13, 8)
    with pytest.raises(InvalidRequest, match="on single pod"):
        split_slots(13, 8, single_pod=True, divides=True)
    with pytest.raises(InvalidRequest, match="multiple"):
        split_slots(13, 0, divides=True)


def test_no_more_slots_are_divided_than_a_plan_can_look_at() -> None:
    assert split_slots(1 << 17, 8, divides=True) == PodSplit(1 << 14, 8, 1 << 17)
    with pytest.raises(InvalidRequest, match=r"slots \(131073\) must be at most 131072 .* allow_heterogeneous_fits"):
        split_slots((1 << 17) + 1, 8, divides=True)


def node(name: str, slots: int) -> NodeCapacity:
    return NodeCapacity(name=name, devices=tuple(Device(id=f"{n}") for n in range(slots)))


def test_what_could_fit() -> None:
    nodes = (node("a", 8), node("b", 5))
    assert could_fit(split_slots(13, 8, divides=True), nodes)
    assert not could_fit(split_slots(14, 8, divides=True), nodes)
    assert not could_fit(split_slots(13, 8, divides=True), nodes, excluded=("b",))
    sixes = [node("c", 6), node("d", 6)]
    assert could_fit(split_slots(12, 4, divides=True), sixes), "four pods of three"
    assert not could_fit(split_slots(11, 4, divides=True), sixes)
    assert not could_fit(split_slots(13, 4, divides=True), nodes), "a slot of b beside a pod of four is of no use"


def pool(*, slot_type: str | None = None, type: str = "kubernetes") -> ClusterConfig:
    return ClusterConfig(
        resource_manager=ResourceManagerConfig(
            type=type,  # type: ignore[arg-type]
            slot_type=slot_type,  # type: ignore[arg-type]
            max_slots_per_pod=8,
            scheduler=SchedulerConfig(allow_heterogeneous_fits=True),
        ),
        resource_pools=(
            PoolConfig(pool_name="default"),
            PoolConfig(pool_name="plain", scheduler=SchedulerConfig()),
        ),
    )


def test_which_pools_divide() -> None:
    assert pool().divides_slots("default")
    assert not pool().divides_slots("plain"), "settings of a scheduler are all or nothing"
    assert not pool(slot_type="cpu").divides_slots("default"), "pods ask for cores as slots and otherwise"
    assert pool(type="process").divides_slots("default")


def test_a_launcher_that_makes_no_uneven_pods_gets_none() -> None:
    before = PoolCapacity(pool="default", backend="kubernetes")
    able = PoolCapacity(pool="default", backend="kubernetes", uneven_pods=True)
    for capacity in (able, None):
        assert split_in_pool(pool(), capacity, pool="default", slots=13).num_pods == 2
    with pytest.raises(InvalidRequest, match="multiple"):
        split_in_pool(pool(), before, pool="default", slots=13)
    with pytest.raises(InvalidRequest, match="multiple"):
        split_in_pool(pool(), able, pool="plain", slots=13)
