"""What no node of its pool could ever run is refused when it is submitted, if the pool cannot grow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import msgspec
import pytest
from msgspec import structs

from libs.bus import CoreMessage
from libs.cluster.config import PoolConfig, ResourceManagerConfig
from libs.events import subjects
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.events.node_shapes import ReportedShape
from libs.events.requests.queue_checks import EmptyPoolRequest, QueueAnswer, QueueAnswers, QueueCheck
from services.api.app import App
from tests.integration.api.experiments.conftest import Api, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

POD = "environment: {pod_spec: {spec: {nodeSelector: {gpu: h100}}}}"
EXPERIMENT = "{entrypoint: run, searcher: {name: single, metric: loss}, resources: {slots_per_trial: 2}, " + POD + "}"
SAID = "no node of the resource pool meets its requirements: needs a node with gpu=h100, which no node has"
REFUSED = f"invalid resource configuration: slots requested exceeds cluster capacity: {SAID}"
WARNED = ["LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"]


async def test_it_is_refused_in_the_words_of_the_planner(api: Api) -> None:
    app = _app(api, can_grow=False)
    async with serving(app) as url, scheduler(app) as asked:
        body = {"config": EXPERIMENT, "validateOnly": True}
        with nodes(app):
            assert await api.refused(400, "POST", f"{url}/api/v1/experiments", json=body) == REFUSED
            task = {"config": "{entrypoint: [run], resources: {slots: 1}, " + POD + "}"}
            assert await api.refused(400, "POST", f"{url}/api/v1/generic-tasks", json=task) == REFUSED
            command = {"config": {"entrypoint": ["run"], "resources": {"slots": 1}, **_pod()}}
            assert (await api.refused(400, "POST", f"{url}/api/v1/commands", json=command)).endswith(REFUSED)
        await api.ok("POST", f"{url}/api/v1/experiments", json=body)  # nothing is known of nodes
    assert [(one.task_type, one.slots, one.num_pods) for one in asked] == [
        ("TRIAL", 2, 2),
        ("GENERIC", 1, 1),
        ("COMMAND", 1, 1),
    ]
    assert {one.pool for one in asked} == {"default"}
    assert all((one.pod_spec or {})["spec"]["nodeSelector"] == {"gpu": "h100"} for one in asked)


@pytest.mark.parametrize(("can_grow", "launch_error"), [(True, True), (False, False)])
async def test_where_more_may_come_it_is_accepted_with_a_warning(api: Api, can_grow: bool, launch_error: bool) -> None:
    app = _app(api, can_grow=can_grow, launch_error=launch_error)
    async with serving(app) as url, scheduler(app):
        with nodes(app):
            created = await api.ok(
                "POST", f"{url}/api/v1/experiments", json={"config": EXPERIMENT, "validateOnly": True}
            )
    assert created["warnings"] == WARNED


async def test_a_pool_that_can_grow_is_not_asked_about_slots_alone(api: Api) -> None:
    app = _app(api, can_grow=True)
    plain = EXPERIMENT.replace(", " + POD, "")
    async with serving(app) as url, scheduler(app) as asked:
        with nodes(app):
            await api.ok("POST", f"{url}/api/v1/experiments", json={"config": plain, "validateOnly": True})
    assert asked == []


async def test_without_a_scheduler_it_is_accepted(api: Api) -> None:
    app = _app(api, can_grow=False)
    async with serving(app) as url:
        with nodes(app):
            created = await api.ok(
                "POST", f"{url}/api/v1/experiments", json={"config": EXPERIMENT, "validateOnly": True}
            )
    assert created["warnings"] == []


def _pod() -> dict[str, object]:
    return {"environment": {"pod_spec": {"spec": {"nodeSelector": {"gpu": "h100"}}}}}


def _app(api: Api, *, can_grow: bool, launch_error: bool = True) -> App:
    return replace(
        api.app,
        cluster=structs.replace(
            api.app.cluster,
            resource_manager=ResourceManagerConfig(type="kubernetes", max_slots_per_pod=1),
            resource_pools=(PoolConfig(pool_name="default", can_grow=can_grow),),
            launch_error=launch_error,
        ),
    )


@contextmanager
def nodes(app: App) -> Iterator[None]:
    """The pool ``default`` with two nodes, for a moment."""
    devices = (Device(id="000"), Device(id="001"))
    key = subjects.capacity_key("default")
    app.capacity._by_key[key] = PoolCapacity(
        pool="default",
        backend="kubernetes",
        nodes=tuple(NodeCapacity(name=f"node{i}", devices=devices, shape=0) for i in range(2)),
        shapes=(ReportedShape(labels={"gpu": "a100"}, allocatable={"nvidia.com/gpu": 2}),),
    )
    try:
        yield
    finally:
        del app.capacity._by_key[key]


@asynccontextmanager
async def scheduler(app: App) -> AsyncIterator[list[EmptyPoolRequest]]:
    """One that says that nothing is possible, and what it was asked."""
    asked: list[EmptyPoolRequest] = []

    async def answer(message: CoreMessage) -> bytes:
        questions = msgspec.json.decode(message.data, type=QueueCheck).in_empty_pool
        asked.extend(questions)
        refusal = QueueAnswer(is_possible=False, reason_code="no_such_node", reason=SAID)
        return msgspec.json.encode(QueueAnswers(answers=(), in_empty_pool=(refusal,) * len(questions)))

    async with app.bus.serve(subjects.CHECK_QUEUE, answer):
        yield asked
