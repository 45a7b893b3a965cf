"""A task with fallback pools is refused where none of its pools could ever run it, and accepted where one could."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from msgspec import structs

from deploy.operations.check import as_lines
from libs.bus import CoreMessage
from libs.cluster.config import PoolConfig, ResourceManagerConfig
from libs.events import subjects
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.events.node_shapes import ReportedShape
from libs.events.requests.queue_checks import QueueAnswer, QueueAnswers, QueueCheck
from services.api.app import App
from tests.integration.api.experiments.conftest import Api, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

POOLS = ("spot", "reserved", "other")
EXPERIMENT = (
    "{entrypoint: run, searcher: {name: single, metric: loss}, resources: {resource_pool: spot, slots_per_trial: %d,"
    " fallback_pools: [%s]}}"
)
TASK = "{entrypoint: [run], resources: {resource_pool: spot, slots: %d, fallback_pools: [%s]}}"
COMMAND = {"entrypoint": ["run"], "resources": {"resource_pool": "spot", "slots": 1, "fallback_pools": ["reserved"]}}
WARNED = ["LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"]
EXCEEDS = "slots requested exceeds cluster capacity"
SAID = "no node of the resource pool meets its requirements"
REFUSED = (
    f"invalid resource configuration: resource pool spot: {EXCEEDS}: {SAID}; resource pool reserved: {EXCEEDS}: {SAID}"
)


def _app(api: Api, *, grows: Collection[str] = (), launch_error: bool = True) -> App:
    pools = tuple(PoolConfig(pool_name=name, can_grow=name in grows) for name in POOLS)
    manager = ResourceManagerConfig(type="kubernetes", max_slots_per_pod=2)
    cluster = structs.replace(
        api.app.cluster, resource_manager=manager, resource_pools=pools, launch_error=launch_error
    )
    return replace(api.app, cluster=cluster)


@asynccontextmanager
async def _cluster(app: App, *, unfit: Collection[str] = ()) -> AsyncIterator[tuple[str, list[list[str]]]]:
    """Pools of two nodes with two slots each, and a scheduler that says in which of them something cannot run; its url
    and the pools that each question was about."""
    asked: list[list[str]] = []

    def answered(pool: str) -> QueueAnswer:
        return QueueAnswer(is_possible=False, reason_code="no_such_node", reason=SAID) if pool in unfit else _WAITS

    async def answer(message: CoreMessage) -> bytes:
        question = msgspec.json.decode(message.data, type=QueueCheck)
        asked.append([one.pool for one in question.in_empty_pool])
        return msgspec.json.encode(
            QueueAnswers(
                answers=tuple(answered(one.pool) for one in question.requests),
                in_empty_pool=tuple(answered(one.pool) for one in question.in_empty_pool),
            )
        )

    devices = (Device(id="000"), Device(id="001"))
    keys = [subjects.capacity_key(name) for name in POOLS]
    for name, key in zip(POOLS, keys, strict=True):
        app.capacity._by_key[key] = PoolCapacity(
            pool=name,
            backend="kubernetes",
            nodes=tuple(NodeCapacity(name=f"{name}{i}", devices=devices, shape=0) for i in range(2)),
            shapes=(ReportedShape(labels={"gpu": "a100"}, allocatable={"nvidia.com/gpu": 2}),),
        )
    try:
        async with serving(app) as url, app.bus.serve(subjects.CHECK_QUEUE, answer):
            yield url, asked
    finally:
        for key in keys:
            del app.capacity._by_key[key]


_WAITS = QueueAnswer(reason_code="no_room", reason="full")


async def test_what_none_of_its_pools_could_run_is_refused_with_what_each_lacks(api: Api) -> None:
    async with _cluster(_app(api), unfit=("spot", "reserved")) as (url, asked):
        experiment = {"config": EXPERIMENT % (2, "reserved"), "validateOnly": True}
        assert await api.refused(400, "POST", f"{url}/api/v1/experiments", json=experiment) == REFUSED
        task = {"config": TASK % (1, "reserved")}
        assert await api.refused(400, "POST", f"{url}/api/v1/generic-tasks", json=task) == REFUSED
        said = await api.refused(400, "POST", f"{url}/api/v1/commands", json={"config": COMMAND})
        assert said.endswith(REFUSED)
        assert await api.refused(400, "POST", f"{url}/api/v1/resolute/check", json=experiment) == REFUSED
    assert asked == [["spot", "reserved"]] * 4, "one question about all of its pools"


async def test_by_slots_alone_it_is_refused_without_a_question(api: Api) -> None:
    async with _cluster(_app(api)) as (url, asked):
        body = {"config": EXPERIMENT % (8, "reserved"), "validateOnly": True}
        said = await api.refused(400, "POST", f"{url}/api/v1/experiments", json=body)
    each = f"resource pool spot: {EXCEEDS}; resource pool reserved: {EXCEEDS}"
    assert (said, asked) == (f"invalid resource configuration: {each}", [])


@pytest.mark.parametrize("unfit", [("spot",), ("reserved",), ("spot", "reserved")])
async def test_what_one_of_its_pools_could_run_is_accepted_with_a_warning(api: Api, unfit: tuple[str, ...]) -> None:
    async with _cluster(_app(api), unfit=unfit) as (url, _):
        body: dict[str, Any] = {"config": EXPERIMENT % (2, "reserved, other"), "validateOnly": True}
        created = await api.ok("POST", f"{url}/api/v1/experiments", json=body)
        checked = await api.ok("POST", f"{url}/api/v1/resolute/check", json=body)
        text = {"type": "TASK_TYPE_GENERIC", "config": TASK % (2, "reserved, other")}
        task = await api.ok("POST", f"{url}/api/v1/resolute/check/tasks", json=text)
    assert created["warnings"] == checked["warnings"] == WARNED
    reason = f"{EXCEEDS}: {SAID}"
    assert checked["unfitPools"] == task["unfitPools"] == [{"resourcePool": pool, "reason": reason} for pool in unfit]
    assert [line for line in as_lines(checked) if line.startswith("It cannot run")] == [
        f"It cannot run in pool {pool}: {reason}." for pool in unfit
    ]
    assert checked["start"]["possible"]


async def test_what_all_could_run_is_accepted_without_one(api: Api) -> None:
    async with _cluster(_app(api)) as (url, _):
        body = {"config": EXPERIMENT % (4, "reserved"), "validateOnly": True}
        created = await api.ok("POST", f"{url}/api/v1/experiments", json=body)
        checked = await api.ok("POST", f"{url}/api/v1/resolute/check", json=body)
    assert (created["warnings"], checked["unfitPools"]) == ([], [])


async def test_where_one_may_grow_nothing_is_refused(api: Api) -> None:
    async with _cluster(_app(api, grows=("reserved",)), unfit=("spot", "reserved")) as (url, _):
        body = {"config": EXPERIMENT % (8, "reserved"), "validateOnly": True}
        created = await api.ok("POST", f"{url}/api/v1/experiments", json=body)
    assert created["warnings"] == WARNED


async def test_without_launch_error_it_is_accepted(api: Api) -> None:
    async with _cluster(_app(api, launch_error=False), unfit=("spot", "reserved")) as (url, _):
        body = {"config": EXPERIMENT % (2, "reserved"), "validateOnly": True}
        created = await api.ok("POST", f"{url}/api/v1/experiments", json=body)
    assert created["warnings"] == WARNED


async def test_its_own_pool_alone_is_no_fallback(api: Api) -> None:
    async with _cluster(_app(api)) as (url, _):
        body = {"config": EXPERIMENT % (8, "spot"), "validateOnly": True}
        said = await api.refused(400, "POST", f"{url}/api/v1/experiments", json=body)
    assert said == f"invalid resource configuration: {EXCEEDS}"
