"""Time limits in the queue: what ends in time may start in the place of a large job (docs/scheduling.md; B4)."""

from __future__ import annotations

from typing import Any

from services.scheduler.plan.reasons import WaitReason
from tests.harness import eventually
from tests.integration.scheduler.world import QUICK, World


async def create(w: World, slots: int, hours: int | None) -> int:
    limit: dict[str, Any] = {} if hours is None else {"time_limit": hours * 3600}
    experiment: int = await w.api.create(resources={"slots_per_trial": slots, **limit})
    return experiment


async def waits_for(w: World, experiment: int, reason: WaitReason) -> None:
    async def is_noted() -> bool:
        return any(row["wait_reason"].startswith(reason) for row in await w.api.allocations(experiment))

    await eventually(is_noted, what=f"experiment {experiment} waits: {reason}")


async def test_a_short_job_starts_before_the_reservation_of_a_blocked_one(world: World) -> None:
    async with world.scheduling(QUICK) as w:
        await create(w, 6, 4)
        await w.launcher.running()
        blocked = await create(w, 8, None)
        await waits_for(w, blocked, WaitReason.NO_ROOM)
        longer, endless = await create(w, 1, 5), await create(w, 1, None)
        await waits_for(w, longer, WaitReason.BEHIND_RESERVATION)
        await waits_for(w, endless, WaitReason.BEHIND_RESERVATION)
        short = await create(w, 1, 3)
        second = (await w.launcher.running(2))[1]
        assert second.startswith(f"{short}.")


async def test_what_has_run_before_fits_where_the_whole_limit_did_not(world: World) -> None:
    async with world.scheduling(QUICK) as w:
        await create(w, 6, 4)
        await w.launcher.running()
        blocked = await create(w, 8, None)
        await waits_for(w, blocked, WaitReason.NO_ROOM)
        longer = await create(w, 1, 5)
        await waits_for(w, longer, WaitReason.BEHIND_RESERVATION)
        await w.api.sql("UPDATE allocations SET ran_before_s = 7200 WHERE task_id LIKE :mine", mine=f"{longer}.%")
        second = (await w.launcher.running(2))[1]
        assert second.startswith(f"{longer}.")
