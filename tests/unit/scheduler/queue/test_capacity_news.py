"""Reports of a capacity for which a pool is planned, and those that say nothing new to plans."""

from __future__ import annotations

import msgspec
import pytest

from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from services.scheduler.queue.reported.capacity_news import CapacityNews

FREE = Device(id="000")
OWN = Device(id="000", allocation="1.a.1", container="c")
STRANGERS = Device(id="000", container="c")
NEIGHBOURS = Device(id="000", allocation="2.b.1", container="c", foreign=True)


def reported(device: Device = FREE, **more: object) -> PoolCapacity:
    node = NodeCapacity(name="n", devices=(device, Device(id="001")))
    return msgspec.structs.replace(PoolCapacity(pool="p", backend="kubernetes", nodes=(node,)), **more)


@pytest.mark.parametrize(
    ("before", "after", "is_news"),
    [
        pytest.param(reported(), reported(OWN, seen_at="later", revision=7), False, id="an own pod has come"),
        pytest.param(reported(OWN), reported(), False, id="an own pod has gone"),
        pytest.param(reported(), reported(STRANGERS), True, id="a stranger has come"),
        pytest.param(reported(NEIGHBOURS), reported(), True, id="a task of another pool has gone"),
        pytest.param(reported(), reported(quota_slots=4), True, id="a quota"),
        pytest.param(
            reported(),
            reported(nodes=(NodeCapacity(name="n", devices=(FREE, Device(id="001")), draining=True),)),
            True,
            id="a node is drained",
        ),
        pytest.param(reported(), reported(nodes=(NodeCapacity(name="n", devices=(FREE,)),)), True, id="a slot less"),
        pytest.param(reported(), None, True, id="no capacity any more"),
    ],
)
def test_what_plans_depend_on(before: PoolCapacity, after: PoolCapacity | None, is_news: bool) -> None:
    news = CapacityNews()
    assert news.is_news("p", before)
    assert news.is_news("p", after) is is_news
    assert not news.is_news("p", after) or after is None
