"""What would become of a request whose pods require something of nodes, or that needs time to leave."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from libs.events import subjects
from libs.events.requests.queue_checks import EmptyPoolRequest, QueueAnswers, QueueCheck
from libs.maintenance.rows import insert_window
from libs.maintenance.windows import MaintenanceWindow
from services.scheduler.plan.reasons import WaitReason
from tests.harness import eventually
from tests.integration.scheduler.queue import test_nodes_that_pods_require as nodes
from tests.integration.scheduler.queue.test_queue_checks import ask, knows_its_nodes, request_of
from tests.integration.scheduler.world import World

world = nodes.world


async def test_what_no_node_has_is_impossible_in_the_words_of_the_planner(world: World) -> None:
    async with world.scheduling() as w:
        await nodes.offer(w)
        await knows_its_nodes(w)
        [answer] = await ask(w, request_of(8, pod_spec=_pod("h100")))
        assert (answer.starts_now, answer.is_possible, answer.reason_code) == (False, False, "no_such_node")
        await w.api.create(slots=8, environment=nodes.on("h100"))
        await nodes.until_it_waits(w, answer.reason)
        assert "gpu=h100, which no node has" in answer.reason


@pytest.mark.parametrize(("gpu", "cpu"), [("a100", "4"), ("a100", "9"), ("v100", "9"), ("h100", "1")])
async def test_a_question_is_answered_as_the_submission_is_planned(world: World, gpu: str, cpu: str) -> None:
    async with world.scheduling() as w:
        await nodes.offer(w, v100=nodes.OBSERVED)
        await knows_its_nodes(w)
        [answer] = await ask(w, request_of(1, pod_spec=_pod(gpu, cpu=cpu)))
        await w.api.create(slots=1, environment=nodes.on(gpu, cpu=cpu))
        await eventually(lambda: _is_planned(w))
        [row] = await w.api.allocations()
        assert (answer.starts_now, answer.reason) == (row["assigned_at"] is not None, row["wait_reason"] or "")
        assert list(answer.nodes) == [place["node"] for place in row["places"]]


@pytest.mark.parametrize(("gpu", "possible"), [("a100", True), ("h100", False)])
async def test_what_an_empty_pool_could_run_is_answered_whatever_runs(world: World, gpu: str, possible: bool) -> None:
    async with world.scheduling() as w:
        await nodes.offer(w, v100=nodes.OBSERVED)
        await w.api.create(slots=8, environment=nodes.on("v100"))
        await w.launcher.running()
        await w.api.create(slots=8, environment=nodes.on("a100"))
        await w.launcher.running(2)
        pod = EmptyPoolRequest(pool="default", task_type="TRIAL", slots=8, num_pods=1, pod_spec=_pod(gpu))
        reply = await w.bus.request(
            subjects.CHECK_QUEUE, msgspec.json.encode(QueueCheck(in_empty_pool=(pod,))), timeout_s=30
        )
        [answer] = msgspec.json.decode(reply, type=QueueAnswers).in_empty_pool
        assert (answer.is_possible, answer.reason_code) == (possible, "" if possible else "no_such_node")


async def test_who_needs_long_to_leave_does_not_start_before_maintenance(world: World) -> None:
    async with world.scheduling() as w:
        await w.launcher.offer()
        await knows_its_nodes(w)
        now = datetime.now(UTC)
        window = MaintenanceWindow(
            id=0, pool="default", starts_at=now + timedelta(hours=12), ends_at=now + timedelta(hours=24)
        )
        async with w.db.transaction() as connection:
            await insert_window(connection, window, now=now)
        quick, slow = await ask(w, request_of(1, preemption_timeout_s=60), request_of(1, preemption_timeout_s=86_400))
        assert quick.starts_now
        assert (slow.starts_now, slow.reason_code) == (False, WaitReason.MAINTENANCE.code)
        assert slow.estimated_start is not None
        assert abs(slow.estimated_start - window.ends_at) < timedelta(seconds=1)


def _pod(gpu: str, **more: Any) -> Any:
    return nodes.on(gpu, **more)["pod_spec"]


async def _is_planned(w: World) -> bool:
    return any(row["assigned_at"] or row["wait_reason"] for row in await w.api.allocations())
