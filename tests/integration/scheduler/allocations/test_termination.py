"""Tasks that were told from elsewhere that they have to leave: the api notes the request, the scheduler carries it out
(docs/reference/scheduling.md 8.1)."""

from __future__ import annotations

import pytest

from libs.states.allocation import CLUSTER_PREEMPTS
from services.scheduler.settings import EngineSettings, QueueSettings, SchedulerSettings
from tests.harness import eventually
from tests.integration.scheduler.deletion.test_endings import _launch_notebook
from tests.integration.scheduler.world import QUICK, World

REASON = CLUSTER_PREEMPTS
NEVER_RESYNCED = SchedulerSettings(queue=QueueSettings(resync_s=600), engine=EngineSettings(resync_s=600, log_wait_s=0))
"""For what has to be done at once, because somebody says so."""


async def is_asked(world: World, allocation: str) -> bool:
    return (await world.api.allocation(allocation))["preempted_at"] is not None


async def is_over(world: World, allocation: str) -> bool:
    return (await world.api.allocation(allocation))["state"] == "TERMINATED"


@pytest.mark.parametrize("notify", [True, False], ids=["at once", "without a notification"])
async def test_trial_that_listens_is_asked_to_leave_and_comes_back(world: World, notify: bool) -> None:
    async with world.scheduling(NEVER_RESYNCED if notify else QUICK) as w:
        experiment = await w.api.create(max_restarts=0)
        [first] = await w.launcher.running()
        await w.api.ready(first)
        await w.api.request_preemption(first, notify=notify)
        await eventually(lambda: is_asked(w, first))
        row = await w.api.allocation(first)
        assert (row["preempt_reason"], row["killed_at"]) == (REASON, None)
        assert row["preempt_deadline"] is not None
        await w.api.ack(first)
        await w.launcher.exit(first)
        second = (await w.launcher.running(2))[1]
        assert (await w.api.allocation(first))["exit_reason"].startswith("allocation preempted after")
        await w.launcher.exit(second)
        await w.api.ended(experiment, "COMPLETED")


async def test_trial_that_does_not_listen_yet_is_killed_and_comes_back(world: World) -> None:
    async with world.scheduling(NEVER_RESYNCED) as w:
        experiment = await w.api.create(max_restarts=0)
        [first] = await w.launcher.running()
        await w.api.request_preemption(first)
        second = (await w.launcher.running(2))[1]
        assert (await w.api.allocation(first))["kill_reason"] == REASON
        [trial] = await w.api.trials(experiment)
        assert (trial["state"], trial["restarts"]) == ("ACTIVE", 0)
        await w.launcher.exit(second)
        await w.api.ended(experiment, "COMPLETED")


async def test_what_can_never_be_asked_is_killed(world: World) -> None:
    async with world.scheduling(NEVER_RESYNCED) as w:
        notebook = await _launch_notebook(w, workspace=1)
        await w.launcher.running()
        await w.api.ready(notebook)
        await w.api.request_preemption(notebook)
        await eventually(lambda: is_over(w, notebook))
        row = await w.api.allocation(notebook)
        assert (row["kill_reason"], row["preempted_at"]) == (REASON, None)
        assert row["exit_reason"].startswith("allocation killed after")


@pytest.mark.parametrize("notify", [True, False], ids=["at once", "without a notification"])
async def test_what_its_user_kills_ends_and_that_is_no_failure(world: World, notify: bool) -> None:
    async with world.scheduling(NEVER_RESYNCED if notify else QUICK) as w:
        notebook = await _launch_notebook(w, workspace=1)
        await w.launcher.running()
        for _ in range(2):
            await w.api.request_kill(notebook, notify=notify)
        await eventually(lambda: is_over(w, notebook))
        row = await w.api.allocation(notebook)
        assert (row["kill_reason"], row["exit_error"]) == ("user requested kill", None)
        assert row["exit_reason"].startswith("allocation killed after")
        ended_at = row["end_time"]
        await w.api.request_kill(notebook)
        assert (await w.api.allocation(notebook))["end_time"] == ended_at


async def test_what_is_killed_while_it_waits_never_starts(world: World) -> None:
    async with world.scheduling(NEVER_RESYNCED) as w:
        await w.launcher.offer(slots=0)
        notebook = await _launch_notebook(w, workspace=1)
        await w.api.request_kill(notebook)
        await eventually(lambda: is_over(w, notebook))
        row = await w.api.allocation(notebook)
        assert row["exit_reason"].startswith("allocation aborted after")
        assert (row["assigned_at"], row["start_time"], w.launcher.specs) == (None, None, {})
