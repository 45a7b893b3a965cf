"""What tests of consolidation do with a trial that is moved, and ask of it."""

from __future__ import annotations

from typing import Any

from tests.integration.scheduler.world import World


async def save_and_leave(world: World, allocation: str) -> None:
    """The task acknowledges that it was asked to leave, and ends."""
    await world.api.ack(allocation)
    await world.launcher.exit(allocation)


async def started_again(world: World, moved: str) -> str:
    """The allocation in which a trial that was moved has started again; "" before it has."""
    found = await world.api.sql(
        "SELECT n.allocation_id FROM allocations n JOIN allocations a ON a.task_id = n.task_id"
        " WHERE a.allocation_id = :moved AND n.allocation_id <> :moved AND n.assigned_at IS NOT NULL",
        moved=moved,
    )
    return str(found[0]) if found else ""


def nodes_of(row: Any) -> list[str]:
    """The nodes of an allocation, in order."""
    return sorted(place["node"] for place in row["places"])
