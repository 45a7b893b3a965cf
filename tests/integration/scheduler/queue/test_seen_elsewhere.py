"""Pods that are on other nodes than plans have thought: who waits need not wait for the next look at everything."""

from __future__ import annotations

import msgspec

from libs.cluster.config import ClusterConfig, PoolConfig, SchedulerConfig
from libs.events.orders import Order
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.settings import EngineSettings, QueueSettings, SchedulerSettings
from tests.harness import eventually
from tests.integration.scheduler.world import KUBERNETES, World

ONLY_WHEN_TOLD = SchedulerSettings(queue=QueueSettings(resync_s=3600), engine=EngineSettings(log_wait_s=0))


async def test_what_waits_starts_where_the_pods_of_others_turn_out_not_to_be(world: World) -> None:
    world.cluster = _spreading()
    world.launcher.on_run = _says_nothing_yet
    async with world.scheduling(ONLY_WHEN_TOLD, slots=4, nodes=2) as w:
        for _ in range(2):
            await w.api.create(slots=2)
        both = await w.launcher.running(2)
        waiting = await w.api.create(slots=4)
        await eventually(lambda: _waits(w, waiting))
        w.launcher.node = "node0"
        for allocation in both:
            await w.launcher.see(allocation, "STARTING")
        await w.launcher.running(3)


async def test_what_waits_starts_where_a_pod_has_ended_before_the_others_of_its_gang(world: World) -> None:
    world.cluster = _spreading()
    world.launcher.on_run = _says_nothing_yet
    world.launcher.node = ""
    async with world.scheduling(ONLY_WHEN_TOLD, slots=8, nodes=2) as w:
        await w.api.create(slots=16)
        [gang] = await w.launcher.running(1)
        await w.launcher.see(gang, "RUNNING")
        waiting = await w.api.create(slots=8)
        await eventually(lambda: _waits(w, waiting))
        first, second = w.launcher.said[gang].pods
        ended = msgspec.structs.replace(first, state="TERMINATED", exit_code=0)
        await w.launcher.publish(msgspec.structs.replace(w.launcher.said[gang], revision=2, pods=(ended, second)))
        await w.launcher.running(2)


def _spreading() -> ClusterConfig:
    pool = PoolConfig(pool_name="default", scheduler=SchedulerConfig(fitting_policy="worst"))
    return msgspec.structs.replace(KUBERNETES, resource_pools=(pool,))


async def _says_nothing_yet(order: Order) -> None:
    """Its pods have no node."""


async def _waits(world: World, experiment: int) -> bool:
    rows = await world.api.allocations(experiment)
    return bool(rows) and rows[0]["wait_reason"].startswith(WaitReason.NO_ROOM)
