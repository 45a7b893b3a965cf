"""Which nodes pools share, and what others hold of them."""

from __future__ import annotations

from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from services.scheduler.queue.restricting.shared_nodes import Lent, shared_nodes

EARLY, LATE = "2030-01-01T00:00:00Z", "2031-01-01T00:00:00Z"


def pool(name: str, *nodes: tuple[str, str], backend: str = "kubernetes") -> PoolCapacity:
    return PoolCapacity(
        pool=name, backend=backend, nodes=tuple(NodeCapacity(name=node, registered_at=at) for node, at in nodes)
    )


def test_nodes_are_the_same_that_have_a_name_and_were_registered_at_one_time() -> None:
    mine = pool("a", ("n1", EARLY), ("n2", EARLY), ("n3", ""))
    others = [
        mine,
        pool("b", ("n1", EARLY), ("n2", LATE), ("n3", "")),
        pool("c", ("n4", EARLY)),
        pool("d", ("n2", EARLY), ("n1", EARLY)),
    ]
    assert shared_nodes(mine, others) == {"b": {"n1"}, "d": {"n1", "n2"}}


def test_machines_share_no_slots() -> None:
    here, there = (pool(name, ("host", EARLY), backend="process") for name in ("a", "b"))
    assert shared_nodes(here, [here, there]) == {}
    assert shared_nodes(pool("c", ("host", EARLY)), [here]) == {}


def test_rows_say_more_than_what_was_last_seen_of_pods() -> None:
    devices = (
        Device(id="0", container="x", allocation="1.x.1", foreign=True),
        Device(id="1", container="y", allocation="2.y.1", foreign=True),
        Device(id="2", container="z"),
        Device(id="3", container="m", allocation="3.m.1"),
    )
    node = NodeCapacity(name="n1", devices=devices)
    assert Lent().on(node) == 2
    assert Lent({"n1": 3}, frozenset({"1.x.1"})).on(node) == 4, "what no row knows is of another installation"
