"""Generic tasks from what the api writes to what the scheduler makes of it, with a launcher that obeys
(docs/reference/tasks-and-cli.md 6)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from libs.db.outbox import announce
from libs.db.relay import relay_outbox
from libs.db.transactions import in_transaction
from libs.errors import FailedPrecondition
from libs.events.changes import AllocationChanged
from libs.run_until_first_exits import end
from services.api.actions.generic_tasks import control
from tests.builders import insert_generic_task
from tests.harness import eventually
from tests.integration.scheduler.world import QUICK, World, background


async def start(world: World, **columns: Any) -> str:
    async def work(connection: Any) -> str:
        task = await insert_generic_task(connection, **columns)
        requested = AllocationChanged(allocation_id=f"{task}.1", task_id=task, what="requested", pool="default")
        await announce(connection, requested)
        return task

    return await in_transaction(world.db, work)


async def ask(world: World, what: str, task: str, **options: Any) -> None:
    change: Callable[..., Awaitable[None]] = getattr(control, what)
    await in_transaction(world.db, lambda connection: change(connection, task, **options))


async def kill(world: World, task: str, *, from_root: bool = False) -> None:
    await ask(world, "kill", task, from_root=from_root)


async def has_state(world: World, task: str, state: str, *, ended: bool | None = None) -> None:
    query = """
        SELECT g.state || ' ' || (t.end_time IS NOT NULL)::text
        FROM generic_tasks g JOIN tasks t USING (task_id) WHERE task_id = :task
    """
    is_over = state in ("PAUSED", "COMPLETED", "CANCELED", "ERROR") if ended is None else ended
    wanted = f"{state} {str(is_over).lower()}"

    async def look() -> bool:
        return await world.api.sql(query, task=task) == [wanted]

    await eventually(look, what=f"{task} is {wanted}")


async def runs(world: World, allocation: str) -> None:
    await eventually(lambda: allocation in world.launcher.specs, what=f"{allocation} runs")


async def no_session_is_left(world: World) -> None:
    for table in ("allocation_sessions", "user_sessions"):
        assert await world.api.sql(f"SELECT count(*) FROM {table} WHERE revoked_at IS NULL") == [0]


@pytest.mark.parametrize(("code", "state"), [(0, "COMPLETED"), (3, "ERROR")])
async def test_its_exit_is_its_end(world: World, code: int, state: str) -> None:
    async with world.scheduling() as w:
        task = await start(w)
        await runs(w, f"{task}.1")
        spec = w.launcher.specs[f"{task}.1"].spec
        assert spec is not None
        assert (spec.task_type, spec.name, spec.argv) == ("GENERIC", f"Generic Task {task}", ("true",))
        await w.launcher.exit(f"{task}.1", code)
        await has_state(w, task, state)
        assert (await w.api.allocation(f"{task}.1"))["exit_processed"]
        await no_session_is_left(w)


async def test_paused_and_unpaused_it_runs_in_another_allocation_which_may_be_preempted(world: World) -> None:
    async with world.scheduling() as w:
        task = await start(w, allocation={"preemption_timeout_s": 77, "slots": 2})
        await runs(w, f"{task}.1")
        await ask(w, "pause", task)
        await has_state(w, task, "PAUSED")
        first = await w.api.allocation(f"{task}.1")
        assert (first["preemptible"], first["kill_reason"]) == (False, "user requested pause")
        await no_session_is_left(w)
        await ask(w, "unpause", task)
        await runs(w, f"{task}.2")
        await has_state(w, task, "ACTIVE")
        second = await w.api.allocation(f"{task}.2")
        assert (second["preemptible"], second["preemption_timeout_s"], second["slots"]) == (True, 77, 2)
        assert (second["job_id"], second["name"]) == (first["job_id"], first["name"])
        await w.launcher.exit(f"{task}.2")
        await has_state(w, task, "COMPLETED")


async def test_one_that_listens_is_asked_to_leave_for_a_pause(world: World) -> None:
    async with world.scheduling() as w:
        task = await start(w, allocation={"preemptible": True})
        allocation = f"{task}.1"
        await runs(w, allocation)
        await w.api.ready(allocation)
        await ask(w, "pause", task)

        async def is_asked() -> bool:
            return (await w.api.allocation(allocation))["preempted_at"] is not None

        await eventually(is_asked)
        await has_state(w, task, "STOPPING_PAUSED", ended=False)
        await w.api.ack(allocation)
        await w.launcher.exit(allocation)
        await has_state(w, task, "PAUSED")
        assert allocation not in w.launcher.stops


async def test_one_that_the_cluster_preempts_waits_for_its_next_run(world: World) -> None:
    async with world.scheduling() as w:
        task = await start(w, allocation={"preemptible": True})
        await runs(w, f"{task}.1")
        await w.api.request_preemption(f"{task}.1")
        await runs(w, f"{task}.2")
        await has_state(w, task, "ACTIVE")


async def test_pause_is_taken_back_before_it_is_done(world: World) -> None:
    async with world.scheduling() as w:
        w.launcher.obeys = False
        task = await start(w)
        await runs(w, f"{task}.1")
        await ask(w, "pause", task)
        await eventually(lambda: f"{task}.1" in w.launcher.stops)
        await ask(w, "unpause", task)
        await has_state(w, task, "ACTIVE")
        await w.launcher.see(f"{task}.1", "TERMINATED", exit_code=137, failure="FAILED")
        await runs(w, f"{task}.2")
        await has_state(w, task, "ACTIVE")


async def test_what_waits_for_slots_is_paused_and_killed_at_once(world: World) -> None:
    async with world.scheduling() as w:
        task = await start(w, allocation={"slots": 64})
        await ask(w, "pause", task)
        await has_state(w, task, "PAUSED")
        await kill(w, task)
        await has_state(w, task, "CANCELED")
        assert not w.launcher.specs


async def test_kill_of_a_tree_of_three_levels_ends_each_of_them(world: World) -> None:
    async with world.scheduling() as w:
        root = await start(w)
        child = await start(w, parent=root)
        grandchild = await start(w, parent=child, root=root)
        other = await start(w, parent=root, no_pause=True)
        for task in (root, child, grandchild, other):
            await runs(w, f"{task}.1")
        await ask(w, "pause", root)
        for task in (root, child, grandchild):
            await has_state(w, task, "PAUSED")
        await has_state(w, other, "ACTIVE")
        await ask(w, "unpause", child)
        for task in (child, grandchild):
            await runs(w, f"{task}.2")
        await has_state(w, root, "PAUSED")
        await kill(w, grandchild, from_root=True)
        for task in (root, child, grandchild, other):
            await has_state(w, task, "CANCELED")
        await no_session_is_left(w)
        with pytest.raises(FailedPrecondition, match=f"cannot cancel task {root} as it is in state 'CANCELED'"):
            await kill(w, child, from_root=True)


async def test_deleting_its_workspace_takes_it_along_with_all_that_is_paused(world: World) -> None:
    async with world.scheduling() as w:
        await w.api.sql("INSERT INTO workspaces (name, owner_id) VALUES ('doomed', 2)")
        task = await start(w, workspace_id=2)
        await start(w, workspace_id=2, parent=task, state="PAUSED")
        stays = await start(w, parent=task)
        await runs(w, f"{task}.1")
        await w.api.delete_workspace(2)

        async def is_gone() -> bool:
            return await w.api.sql("SELECT count(*) FROM tasks WHERE workspace_id = 2") == [0]

        await eventually(is_gone)
        assert await w.api.sql("SELECT task_id FROM generic_tasks") == [stays]
        await kill(w, stays, from_root=True)
        await has_state(w, stays, "CANCELED")


async def test_what_nobody_was_told_of_is_done_all_the_same(world: World) -> None:
    """The messages of every request are lost."""
    task = await start(world)
    async with world.scheduling(QUICK) as w:
        await runs(w, f"{task}.1")
        for what, state in (("pause", "PAUSED"), ("unpause", "ACTIVE"), ("kill", "CANCELED")):
            async with w.db.transaction() as connection:
                options = {"from_root": False} if what == "kill" else {}
                await getattr(control, what)(connection, task, **options)
                await connection.exec_driver_sql("DELETE FROM outbox WHERE xmin = pg_current_xact_id()::xid")
            await has_state(w, task, state)


@pytest.mark.parametrize("seed", [1, 2])
async def test_schedulers_that_are_cut_off_at_any_moment_lose_nothing(world: World, seed: int) -> None:
    """Tasks are paused, unpaused and killed while schedulers come and go; what is asked last is what they become."""
    rng = random.Random(seed)
    await world.launcher.offer()
    async with background(relay_outbox(world.db, world.bus), world.launcher.run()):
        tasks = [await start(world, allocation={"slots": 1}) for _ in range(4)]
        wanted = dict.fromkeys(tasks, "ACTIVE")
        scheduler = asyncio.ensure_future(world.scheduler(QUICK).run())
        for _ in range(12):
            await asyncio.sleep(rng.uniform(0, 0.1))
            await end(scheduler)
            scheduler = asyncio.ensure_future(world.scheduler(QUICK).run())
            task = rng.choice([task for task, state in wanted.items() if state != "CANCELED"] or tasks)
            if wanted[task] == "CANCELED":
                continue
            what = "kill" if rng.random() < 0.15 else "pause" if wanted[task] == "ACTIVE" else "unpause"
            await ask(world, what, task, **({"from_root": False} if what == "kill" else {}))
            wanted[task] = {"kill": "CANCELED", "pause": "PAUSED", "unpause": "ACTIVE"}[what]
        for task, state in wanted.items():
            await has_state(world, task, state)
        live = [task for task, state in wanted.items() if state == "ACTIVE"]

        async def each_runs_once() -> bool:
            rows = await world.api.sql("SELECT task_id FROM allocations WHERE NOT exit_processed")
            return sorted(rows) == sorted(live)

        await eventually(each_runs_once)
        await end(scheduler)


async def test_two_who_change_a_tree_at_the_same_moment_take_turns(world: World) -> None:
    root = await start(world)
    children = [await start(world, parent=root) for _ in range(5)]
    await asyncio.gather(*(kill(world, task) for task in (root, *children)), kill(world, children[0], from_root=True))
    states = await world.api.sql("SELECT DISTINCT state FROM generic_tasks")
    assert states == ["STOPPING_CANCELED"]
