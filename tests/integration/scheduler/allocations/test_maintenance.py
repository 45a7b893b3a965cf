"""What has to leave because of maintenance, and comes back after it (docs/scheduling.md)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from libs.maintenance.rows import delete_window, insert_window, update_window
from libs.maintenance.windows import MaintenanceWindow
from services.scheduler.plan.reasons import WaitReason
from tests.builders import insert_interactive
from tests.harness import eventually
from tests.integration.scheduler.allocations.test_time_limits import asked_to_leave, started
from tests.integration.scheduler.tasks.test_generic_tasks import has_state, runs, start
from tests.integration.scheduler.world import QUICK, World

SOON = timedelta(seconds=600)


def window(starts_in: timedelta, **more: Any) -> MaintenanceWindow:
    now = datetime.now(UTC)
    fields: dict[str, Any] = {"nodes": ("node0",), **more}
    return MaintenanceWindow(
        id=0, starts_at=now + starts_in, ends_at=now + timedelta(days=1), message="new switches", **fields
    )


async def announce(w: World, announced: MaintenanceWindow) -> int:
    async with w.db.transaction() as connection:
        return await insert_window(connection, announced, now=datetime.now(UTC))


async def cancel(w: World, window_id: int) -> None:
    async with w.db.transaction() as connection:
        await delete_window(connection, window_id)


async def waits_for_its_end(w: World, experiment: int, announced: MaintenanceWindow) -> None:
    expected = f"{WaitReason.MAINTENANCE}: {announced.sentence_of(['node0'])}"

    async def is_noted() -> bool:
        return expected in [row["wait_reason"] for row in await w.api.allocations(experiment)]

    await eventually(is_noted, what=expected)


@pytest.mark.parametrize("where", [{}, {"nodes": (), "pool": "default"}])
async def test_a_trial_leaves_before_and_comes_back_after(world: World, where: dict[str, Any]) -> None:
    announced = window(SOON, **where)
    async with world.scheduling(QUICK) as w:
        experiment = await w.api.create(max_restarts=0, resources={"slots_per_trial": 1}, preemption_timeout=3600)
        first = await started(w)
        ident = await announce(w, announced)
        await asked_to_leave(w, first)
        asked = await w.api.allocation(first)
        assert "under maintenance from" in asked["preempt_reason"]
        assert asked["preempt_deadline"] == asked["preempted_at"] + timedelta(seconds=3600)
        await w.api.ack(first)
        await w.launcher.exit(first)
        await waits_for_its_end(w, experiment, announced)
        await cancel(w, ident)
        second = (await w.launcher.running(2))[1]
        [trial] = await w.api.trials(experiment)
        assert (trial["state"], trial["restarts"], trial["run_id"]) == ("ACTIVE", 0, 2)
        await w.launcher.exit(second)
        await w.api.ended(experiment, "COMPLETED")


async def test_what_ends_in_time_goes_on_and_may_still_start(world: World) -> None:
    async with world.scheduling(QUICK) as w:
        announced = window(SOON)
        await announce(w, announced)
        await w.api.create(resources={"slots_per_trial": 1, "time_limit": 300}, preemption_timeout=3600)
        first = await started(w)
        late = await w.api.create(resources={"slots_per_trial": 1, "time_limit": 900}, preemption_timeout=3600)
        endless = await w.api.create(resources={"slots_per_trial": 1}, preemption_timeout=3600)
        for experiment in (late, endless):
            await waits_for_its_end(w, experiment, announced)
        # Somebody who may stay until the window begins is still there after several looks.
        second = await w.api.create(resources={"slots_per_trial": 1}, preemption_timeout=1)
        await w.launcher.running(2)
        assert (await w.api.allocation(first))["preempted_at"] is None
        assert [row["killed_at"] for row in await w.api.allocations(second)] == [None]


async def test_when_it_begins_the_rest_is_killed_and_a_generic_task_that_resumes_comes_back(world: World) -> None:
    async with world.scheduling(QUICK) as w:
        task = await start(w, allocation={"preemptible": True})
        await runs(w, f"{task}.1")
        notebook = await _notebook(w)
        announced = window(SOON)
        ident = await announce(w, announced)
        async with w.db.transaction() as connection:
            now = datetime.now(UTC)
            begun = MaintenanceWindow(id=ident, nodes=("node0",), starts_at=now, ends_at=now + SOON)
            await update_window(connection, begun)

        async def are_killed() -> bool:
            rows = [await w.api.allocation(one) for one in (f"{task}.1", notebook)]
            return all(row["kill_reason"] == begun.sentence for row in rows)

        await eventually(are_killed)
        await has_state(w, task, "ACTIVE", ended=False)
        await cancel(w, ident)
        await runs(w, f"{task}.2")


async def test_other_nodes_and_pools_are_left_alone(world: World) -> None:
    async with world.scheduling(QUICK) as w:
        await announce(w, window(timedelta(), nodes=("node7",)))
        await announce(w, window(timedelta(), nodes=(), pool="elsewhere"))
        await w.api.create(resources={"slots_per_trial": 1})
        first = await started(w)
        ident = await announce(w, window(timedelta()))
        await asked_to_leave(w, first)
        asked = await w.api.allocation(first)
        await cancel(w, ident)
        assert "node0 is" in asked["preempt_reason"]


async def _notebook(w: World) -> str:
    now = datetime.now(UTC)
    running = {"state": "RUNNING", "assigned_at": now, "start_time": now, "places": [{"node": "node0", "slots": 0}]}
    async with w.db.transaction() as connection:
        return await insert_interactive(connection, task_type="NOTEBOOK", allocation=running)
