from __future__ import annotations

from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.telemetry import value
from services.launcher.capacity_metrics import show_capacity, slots_by_kind

FREE = Device(id="000")
USED = Device(id="001", allocation="1.a.1", container="c")
OF_ANOTHER_POOL = Device(id="002", allocation="1.b.1", container="c", foreign=True)
OF_NOBODY_WE_KNOW = Device(id="003", container="c")


def capacity(*nodes: NodeCapacity) -> PoolCapacity:
    return PoolCapacity(pool="metrics", backend="process", nodes=nodes)


def test_slots_are_free_used_foreign_or_disabled() -> None:
    devices = (FREE, USED, OF_ANOTHER_POOL, OF_NOBODY_WE_KNOW)
    assert slots_by_kind(capacity(NodeCapacity(name="n", devices=devices))) == {"free": 1, "used": 1, "foreign": 2}
    for out_of_service in (
        NodeCapacity(name="n", devices=devices, enabled=False),
        NodeCapacity(name="n", devices=devices, draining=True),
    ):
        assert slots_by_kind(capacity(out_of_service)) == {"disabled": 1, "used": 1, "foreign": 2}


def test_a_kind_of_which_there_are_none_any_more_is_shown_as_none() -> None:
    show_capacity(capacity(NodeCapacity(name="n", devices=(USED,)), NodeCapacity(name="m")))
    assert value("resolute_launcher_slots", pool="metrics", kind="used") == 1
    assert value("resolute_launcher_nodes", pool="metrics") == 2
    show_capacity(capacity(NodeCapacity(name="n", devices=(FREE,))))
    assert value("resolute_launcher_slots", pool="metrics", kind="used") == 0
    assert value("resolute_launcher_slots", pool="metrics", kind="free") == 1
