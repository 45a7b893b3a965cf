"""Slots that plans divide into pods of different sizes (docs/reference/scheduling.md 16, B5)."""

from __future__ import annotations

from libs.cluster.config import ClusterConfig, PoolConfig, ResourceManagerConfig, SchedulerConfig
from libs.events.orders import TaskSpec
from services.scheduler.plan.reasons import WaitReason
from tests.harness import eventually
from tests.integration.scheduler.world import World

DIVIDES = ClusterConfig(
    resource_manager=ResourceManagerConfig(
        type="kubernetes",
        cluster_name="here",
        max_slots_per_pod=8,
        scheduler=SchedulerConfig(allow_heterogeneous_fits=True),
    ),
    resource_pools=(PoolConfig(pool_name="default"),),
)
EQUAL = ClusterConfig(
    resource_manager=ResourceManagerConfig(type="kubernetes", cluster_name="here", max_slots_per_pod=8),
    resource_pools=(PoolConfig(pool_name="default"),),
)


async def offer(w: World, *, uneven_pods: bool = True) -> None:
    await w.launcher.offer(8, nodes=2, uneven_pods=uneven_pods)


def spec_of(w: World, allocation: str) -> TaskSpec:
    spec = w.launcher.specs[allocation].spec
    assert spec is not None
    return spec


async def waits_for(w: World, experiment: int, reason: WaitReason) -> bool:
    return any(row["wait_reason"].startswith(reason) for row in await w.api.allocations(experiment))


async def nothing() -> None:
    """It is not reported."""


async def test_the_plan_says_how_many_slots_each_pod_has(world: World) -> None:
    world.cluster = DIVIDES
    async with world.scheduling() as w:
        await offer(w)
        uneven = await w.api.create(slots=13)
        [first] = await w.launcher.running()
        spec = spec_of(w, first)
        assert (spec.slots, spec.num_pods, spec.pod_slots) == (13, 2, (8, 5))
        assert set(spec.pod_nodes) == {"node0", "node1"}
        row = await w.api.allocation(first)
        assert row["num_pods"] == 2
        assert [(place["node"], place["slots"]) for place in row["places"]] == list(
            zip(spec.pod_nodes, spec.pod_slots, strict=True)
        )
        # What is left is on the node of the smaller pod, whichever of the two was reported first. This launcher would
        # report equal pods on its first node.
        w.launcher.on_run = lambda _order: nothing()
        beside = await w.api.create(slots=3)
        second = (await w.launcher.running(2))[1]
        [place] = (await w.api.allocation(second))["places"]
        assert place["node"] == spec.pod_nodes[1]
        waiting = await w.api.create(slots=2)
        await eventually(lambda: waits_for(w, waiting, WaitReason.NO_ROOM))
        await w.launcher.exit(first)
        await w.api.ended(uneven, "COMPLETED")
        third = (await w.launcher.running(3))[2]
        for allocation, experiment in ((second, beside), (third, waiting)):
            await w.launcher.exit(allocation)
            await w.api.ended(experiment, "COMPLETED")


async def test_equal_pods_are_ordered_as_ever(world: World) -> None:
    world.cluster = DIVIDES
    async with world.scheduling() as w:
        await offer(w)
        await w.api.create(slots=14)
        [first] = await w.launcher.running()
        spec = spec_of(w, first)
        assert (spec.num_pods, spec.slots_per_pod, spec.pod_slots, spec.pod_nodes) == (2, 7, (), ())


async def test_a_launcher_that_makes_none_is_asked_for_none(world: World) -> None:
    """As one of the release before, while the scheduler is a new one already."""
    world.cluster = DIVIDES
    async with world.scheduling() as w:
        await offer(w, uneven_pods=False)
        experiment = await w.api.create(slots=13)
        await eventually(lambda: waits_for(w, experiment, WaitReason.EQUAL_PODS))
        await w.api.create(slots=16)
        [first] = await w.launcher.running()
        assert (spec_of(w, first).slots, spec_of(w, first).pod_slots) == (16, ())
        await w.launcher.exit(first)
        await offer(w)
        assert spec_of(w, (await w.launcher.running(2))[1]).pod_slots == (8, 5)


async def test_what_was_accepted_runs_when_the_pool_divides_nothing_any_more(world: World) -> None:
    world.cluster = DIVIDES
    async with world.scheduling() as w:
        await w.launcher.offer(0, nodes=2, uneven_pods=True)
        experiment = await w.api.create(slots=13)
        await eventually(lambda: waits_for(w, experiment, WaitReason.TOO_LARGE))
    world.cluster = EQUAL
    async with world.scheduling() as w:
        await offer(w)
        [first] = await w.launcher.running()
        assert spec_of(w, first).pod_slots == (8, 5)


async def test_its_next_attempts_go_on_when_the_pool_divides_nothing_any_more(world: World) -> None:
    world.cluster = DIVIDES
    async with world.scheduling() as w:
        await offer(w)
        experiment = await w.api.create(slots=13)
        [first] = await w.launcher.running()
    world.cluster = EQUAL
    async with world.scheduling() as w:
        await offer(w, uneven_pods=False)
        await w.launcher.exit(first, 1)
        await eventually(lambda: waits_for(w, experiment, WaitReason.EQUAL_PODS))
        await offer(w)
        second = (await w.launcher.running(2))[1]
        assert spec_of(w, second).pod_slots == (8, 5)
        await w.launcher.exit(second)
        await w.api.ended(experiment, "COMPLETED")
