from __future__ import annotations

from typing import Any

import pytest

from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from services.scheduler.allocations.pod_nodes import is_on
from services.scheduler.queue.pool_rows import held_elsewhere, nodes_of, off_the_pool
from tests.unit.scheduler.rows import allocation


def node(name: str, *devices: Device, **fields: Any) -> NodeCapacity:
    return NodeCapacity(name=name, devices=devices, **fields)


def test_slots_of_foreign_containers_are_not_ours_to_give() -> None:
    capacity = PoolCapacity(
        pool="p",
        backend="kubernetes",
        max_aux_containers_per_node=3,
        nodes=(
            node("a", Device(id="0", container="x"), Device(id="1", container="y", allocation="1.x.1"), Device(id="2")),
            node("b", Device(id="0"), enabled=False),
            node("c", Device(id="0"), draining=True),
            node("d", Device(id="0")),
            node("e", Device(id="0", container="x", foreign=True), Device(id="1")),
        ),
    )
    found = {one.name: (one.slots, one.max_aux, one.available) for one in nodes_of(capacity, excluded=["d"])}
    assert found == {
        "a": (2, 3, True),
        "b": (1, 3, False),
        "c": (1, 3, False),
        "d": (1, 3, False),
        "e": (1, 3, True),
    }


def test_slots_of_other_pools_come_back_and_those_of_this_one_are_told_by_rows() -> None:
    theirs = Device(id="0", container="y", allocation="2.y.1", foreign=True)
    ours = Device(id="1", container="z", allocation="1.x.1")  # it may be over by now
    [found] = nodes_of(PoolCapacity(pool="p", backend="kubernetes", nodes=(node("a", theirs, ours, Device(id="2")),)))
    assert (found.slots, found.lent) == (3, 1)


PLACES = [{"node": "a", "slots": 2}, {"node": "b", "slots": 2}]


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([], (("a", 2), ("b", 2))),
        ([{"state": "RUNNING", "node": "c"}], (("c", 2), ("b", 2))),
        ([{"state": "ASSIGNED", "node": ""}, {"state": "RUNNING", "node": "d"}], (("a", 2), ("d", 2))),
        ([{"state": "TERMINATED", "node": "a"}, {"state": "RUNNING", "node": "b"}], (("b", 2),)),
    ],
    ids=["not seen yet", "placed elsewhere", "not placed yet", "one has ended"],
)
def test_slots_are_held_where_the_pods_are(pods: list[dict[str, Any]], expected: tuple[tuple[str, int], ...]) -> None:
    row = {
        "allocation_id": "x",
        "job_id": "j",
        "slots": 4,
        "num_pods": 2,
        "places": PLACES,
        "pods": pods,
        "namespace": "team",
    }
    held = held_elsewhere(row)
    assert held.pods == expected
    shared = off_the_pool(held)
    assert (shared.slots, shared.namespace, {node for node, _ in shared.pods}) == (held.slots, "team", {""})


@pytest.mark.parametrize(
    ("pods", "nodes", "expected"),
    [
        ([], {"b"}, True),
        ([{"state": "RUNNING", "node": "c"}], {"a"}, False),
        ([{"state": "TERMINATED", "node": "a"}, {"state": "RUNNING", "node": "b"}], {"a"}, False),
        ([], {"", "x"}, False),
    ],
    ids=["where it was placed", "elsewhere than placed", "its pod there has ended", "nowhere"],
)
def test_allocation_is_where_its_pods_are(pods: list[dict[str, Any]], nodes: set[str], expected: bool) -> None:
    assert is_on(allocation(num_pods=2, slots=4, pods=pods, places=PLACES), nodes, plan_binds=True) is expected


def test_where_others_place_pods_only_what_was_seen_counts() -> None:
    waiting = allocation(num_pods=2, slots=4, pods=[{"state": "RUNNING", "node": "c"}], places=PLACES)
    assert is_on(waiting, {"c"}, plan_binds=False)
    assert not is_on(waiting, {"a", "b"}, plan_binds=False)
