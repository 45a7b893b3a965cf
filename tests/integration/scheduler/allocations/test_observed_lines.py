"""What the log of a task says about its pods, whoever comes first with the news."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from libs.clock import SystemClock
from libs.db.tables.cluster import outbox
from libs.events.observations import AllocationObserved, ObservedPod
from services.scheduler.allocations.reconciler import AllocationReconciler
from tests.harness import eventually
from tests.integration.scheduler.world import World


async def test_that_a_task_has_started_is_said_though_it_was_ready_before_it_was_seen_to_run(world: World) -> None:
    """As when a scheduler fails over: the task reports to the api while nobody applies observations."""

    async def pull(order: Any) -> None:
        await world.launcher.see(order.allocation, "PULLING")

    world.launcher.on_run = pull
    async with world.scheduling() as w:
        await w.api.create()
        [allocation] = await w.launcher.running()
        await eventually(lambda: _is(w, allocation, "PULLING"))
    await world.api.ready(allocation)
    assert (await world.api.allocation(allocation))["state"] == "RUNNING"
    seen = AllocationObserved(
        allocation=allocation,
        pool="default",
        revision=100,
        pods=(ObservedPod(name="a", state="RUNNING", node="node0"),),
    )
    for revision in (100, 100, 101):
        # Each time a scheduler that knows nothing but the database.
        engine = AllocationReconciler(db=world.db, clock=SystemClock(), ended=lambda _: None)
        await engine.observe(
            AllocationObserved(allocation=seen.allocation, pool=seen.pool, revision=revision, pods=seen.pods)
        )
    async with world.db.read() as connection:
        payloads = (await connection.execute(select(outbox.c.payload))).scalars()
        assert len([payload for payload in payloads if b"Resources for Trial" in payload]) == 1


async def _is(world: World, allocation: str, state: str) -> bool:
    return (await world.api.allocation(allocation))["state"] == state
