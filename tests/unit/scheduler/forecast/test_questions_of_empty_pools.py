"""A question about several pools that are thought of as empty."""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

import msgspec
import pytest

from libs.bus import CoreMessage
from libs.cluster.config import ClusterConfig, PoolConfig, ResourceManagerConfig
from libs.events import subjects
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.events.node_shapes import ReportedShape
from libs.events.requests.queue_checks import EmptyPoolRequest, QueueAnswer, QueueAnswers, QueueCheck
from services.scheduler.forecast import queue_checks
from services.scheduler.forecast.queue_checks import QueueChecks

POOLS: Final = ("first", "second", "third")
CLUSTER: Final = ClusterConfig(
    resource_manager=ResourceManagerConfig(type="kubernetes"),
    resource_pools=tuple(PoolConfig(pool_name=name, can_grow=False) for name in POOLS),
)


def _capacity(pool: str) -> PoolCapacity:
    node = NodeCapacity(name=f"{pool}-0", devices=(Device(id="0"),), shape=0)
    shape = ReportedShape(labels={}, allocatable={"nvidia.com/gpu": 1, "cpu": 8000, "pods": 110, "memory": 1 << 40})
    return PoolCapacity(pool=pool, backend="kubernetes", nodes=(node,), shapes=(shape,))


async def _answers(*pools: str, slots: int = 1) -> tuple[QueueAnswer, ...]:
    unused = cast("Any", None)
    checks = QueueChecks(db=unused, clock=unused, cluster=CLUSTER, capacity=_capacity, settings=unused, past=unused)
    asked = tuple(EmptyPoolRequest(pool=pool, task_type="TRIAL", slots=slots, num_pods=1) for pool in pools)
    question = msgspec.json.encode(QueueCheck(in_empty_pool=asked))
    reply = await checks.on_question(CoreMessage(subjects.CHECK_QUEUE, question))
    return msgspec.json.decode(reply, type=QueueAnswers).in_empty_pool


async def test_a_pool_that_the_scheduler_does_not_know_leaves_the_others_answered() -> None:
    """It is updated after the api, which may be told of a pool first."""
    first, new, second = await _answers("first", "new", "second", slots=8)
    assert new == QueueAnswer()
    assert not first.is_possible
    assert not second.is_possible


async def test_others_go_on_between_two_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    planned = queue_checks.in_empty_pool

    def in_empty_pool(asked: EmptyPoolRequest, *known: Any) -> QueueAnswer:
        happened.append(asked.pool)
        asyncio.get_running_loop().call_soon(happened.append, "others")
        return planned(asked, *known)

    monkeypatch.setattr(queue_checks, "in_empty_pool", in_empty_pool)
    answers = await _answers(*POOLS)
    assert all(answer.starts_now for answer in answers)
    assert happened[:5] == ["first", "others", "second", "others", "third"]
