"""Gangs whose places change under them (docs/reference/scheduling.md 16, B1 and B16)."""

from __future__ import annotations

from typing import Any

import msgspec

from libs.events import subjects
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.events.observations import AllocationObserved, ObservedPod
from services.scheduler.plan.reasons import WaitReason
from tests.harness import eventually
from tests.integration.scheduler.world import KUBERNETES, World

GANG = {"slots_per_trial": 16}
"""Two pods of eight slots."""


async def test_a_gang_does_not_get_the_node_that_the_end_of_another_says_is_drained(world: World) -> None:
    """The end is heard before the capacity that says so; half of the gang would start."""
    world.cluster = KUBERNETES
    async with world.scheduling() as w:
        w.launcher.on_run = lambda _order: _nothing()
        await _offer(w, revision=10)
        await w.api.create(resources=GANG)
        [first] = await w.launcher.running()
        await _see(w, first, revision=11, state="RUNNING")
        waiting = await w.api.create(resources=GANG)
        await eventually(lambda: _waits_for(w, waiting, WaitReason.NO_ROOM))
        await _see(w, first, revision=12, state="TERMINATED", exit_code=0, closed=("node0",))
        await eventually(lambda: _waits_for(w, waiting, WaitReason.OUT_OF_SERVICE))
        # What was seen before the end confirms nothing.
        await _offer(w, revision=11)
        await _offer(w, revision=13, node0=False)
        assert list(w.launcher.specs) == [first]
        await _offer(w, revision=14)
        assert (await w.launcher.running(2))[1].startswith(await _task_of(w, waiting))


async def test_a_gang_that_does_not_become_whole_goes_back_to_the_queue(world: World) -> None:
    world.cluster = KUBERNETES
    async with world.scheduling() as w:
        w.launcher.on_run = lambda _order: _nothing()
        await _offer(w, revision=10)
        experiment = await w.api.create(resources=GANG, max_restarts=0)
        [first] = await w.launcher.running()
        await _see(w, first, revision=11, state="ASSIGNED", unplaced="1 of 2 within 60 seconds; no room")
        second = (await w.launcher.running(2))[1]
        row = await w.api.allocation(first)
        assert row["kill_reason"] == "not all of its pods found a place: 1 of 2 within 60 seconds; no room"
        assert (row["exit_kind"], row["exit_error"]) == ("TRANSIENT", None)
        assert first in w.launcher.stops
        [trial] = await w.api.trials(experiment)
        assert (trial["restarts"], trial["transient_ends"], trial["state"]) == (0, 1, "ACTIVE")
        await w.launcher.exit(second)
        await w.api.ended(experiment, "COMPLETED")


async def _offer(w: World, *, revision: int, node0: bool = True) -> None:
    devices = tuple(Device(id=f"{i:03}") for i in range(8))
    nodes = tuple(NodeCapacity(name=name, devices=devices, enabled=node0 or name != "node0") for name in NODES)
    capacity = PoolCapacity(pool="default", backend="kubernetes", nodes=nodes, revision=revision)
    bucket = w.bus.bucket(subjects.CAPACITY_BUCKET)
    await bucket.put(subjects.capacity_key("default"), msgspec.json.encode(capacity))


NODES = ("node0", "node1")


async def _see(
    w: World, allocation: str, *, revision: int, closed: tuple[str, ...] = (), unplaced: str = "", **pod: Any
) -> None:
    pods = tuple(ObservedPod(name=f"{allocation}-{node}", node=node, **pod) for node in NODES)
    seen = AllocationObserved(
        allocation=allocation,
        pool="default",
        revision=revision,
        pods=pods,
        num_pods=2,
        closed_nodes=closed,
        unplaced=unplaced,
    )
    w.launcher.said[allocation] = seen
    await w.launcher.publish(seen)


async def _waits_for(w: World, experiment: int, reason: WaitReason) -> bool:
    return any(row["wait_reason"].startswith(reason) for row in await w.api.allocations(experiment))


async def _task_of(w: World, experiment: int) -> str:
    [row] = await w.api.allocations(experiment)
    return str(row["task_id"])


async def _nothing() -> None:
    """It is reported by hand."""
