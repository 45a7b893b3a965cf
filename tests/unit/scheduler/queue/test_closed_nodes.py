from __future__ import annotations

from libs.events.capacity import NodeCapacity, PoolCapacity
from libs.events.observations import AllocationObserved
from services.scheduler.queue.reported.closed_nodes import ClosedNodes


def capacity(revision: int, *, pool: str = "default") -> PoolCapacity:
    nodes = (NodeCapacity(name="a"), NodeCapacity(name="b", enabled=False))
    return PoolCapacity(pool=pool, backend="kubernetes", nodes=nodes, revision=revision)


def seen(revision: int, *closed: str) -> AllocationObserved:
    return AllocationObserved(allocation="1.x.1", pool="default", revision=revision, closed_nodes=closed)


def in_service(closed: ClosedNodes, capacity: PoolCapacity) -> list[str]:
    return [node.name for node in closed.without_closed(capacity).nodes if node.enabled]


def test_a_node_is_closed_until_a_capacity_was_seen_later() -> None:
    closed = ClosedNodes()
    closed.note(seen(5, "a"))
    assert in_service(closed, capacity(4)) == []
    assert in_service(closed, capacity(6)) == ["a"]
    assert in_service(closed, capacity(6)) == ["a"]


def test_an_older_observation_that_comes_again_changes_nothing() -> None:
    closed = ClosedNodes()
    closed.note(seen(5, "a"))
    closed.note(seen(3, "a"))
    assert in_service(closed, capacity(4)) == []
    closed.note(seen(5, "a"))
    assert in_service(closed, capacity(6)) == ["a"]


def test_a_launcher_of_a_release_that_does_not_count_opens_them() -> None:
    closed = ClosedNodes()
    closed.note(seen(5, "a"))
    assert in_service(closed, capacity(0)) == ["a"]
    assert in_service(closed, capacity(4)) == [], "which the release after it has seen before"


def test_nodes_of_other_pools_and_unknown_ones_are_left_alone() -> None:
    closed = ClosedNodes()
    closed.note(seen(5, "a", "gone"))
    assert in_service(closed, capacity(4, pool="other")) == ["a"]
    assert [node.name for node in closed.without_closed(capacity(4)).nodes] == ["a", "b"]
