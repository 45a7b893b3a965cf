"""The lines that explain how an attempt ended are stored before its trial shows it, whatever dies in between."""

from __future__ import annotations

from libs.bus import BusSettings
from services.scheduler.settings import EngineSettings, SchedulerSettings
from tests.harness import eventually
from tests.integration.logs.conftest import Service, logs_settings
from tests.integration.scheduler.world import World

PATIENT = SchedulerSettings(engine=EngineSettings(log_wait_s=120, resync_s=0.3))
POLICY = {"name": "no", "pattern": "OOM", "action": "cancel_retries"}
SAID = "trial failed and matched logs to a don't retry policy\n"
MATCH = '(log "CUDA OOM" matched regex "OOM")\n'


async def _lines(w: World) -> list[str]:
    return [bytes(line).decode() for line in await w.api.sql("SELECT log FROM task_logs ORDER BY id")]


async def _is_explained(w: World, allocation: str) -> bool:
    return (await w.api.allocation(allocation))["explained_at"] is not None


async def _printed(w: World, allocation: str, *, matches: bool = False) -> None:
    """All that its pod printed is stored."""
    task = allocation.rpartition(".")[0]
    if matches:
        found = 'UPDATE tasks SET cancel_retries = \'[{"regex": "OOM", "log": "CUDA OOM"}]\' WHERE task_id = :task'
        await w.api.sql(found, task=task)
    for output in ("stdout", "stderr"):
        await w.api.sql(
            "INSERT INTO log_streams (stream_key, task_id, allocation_id, contiguous, next_seq, missing, sealed_at,"
            " opened_at, written_at) VALUES (:key, :task, :allocation, true, 1, '{}', now(), now(), now())",
            key=f"{allocation}/{output}",
            task=task,
            allocation=allocation,
        )


async def test_what_a_policy_decided_is_in_the_log_before_the_trial_has_failed(
    world: World, own_database_url: str, bus_settings: BusSettings
) -> None:
    async with world.scheduling(PATIENT) as w:
        experiment = await w.api.create(log_policies=[POLICY])
        [allocation] = await w.launcher.running()
        await w.launcher.exit(allocation, 1)
        await _printed(w, allocation, matches=True)
        await eventually(lambda: _is_explained(w, allocation))
        [trial] = await w.api.trials(experiment)
        assert trial["state"] == "ACTIVE", "nobody stores lines yet"
    # Another scheduler takes over in the middle of it.
    async with world.scheduling(PATIENT) as w:
        settings = logs_settings(own_database_url, bus_settings)
        async with Service(settings):
            await w.api.ended(experiment, "ERROR")
            lines = await _lines(w)
    assert [lines.count(SAID), lines.count(MATCH)] == [1, 1]
    assert [line for line in lines if "exit code 1" in line]
    [trial] = await world.api.trials(experiment)
    assert (trial["state"], trial["restarts"]) == ("ERROR", 0)


async def test_an_exit_code_is_in_the_log_before_the_trial_runs_again(
    world: World, own_database_url: str, bus_settings: BusSettings
) -> None:
    async with world.scheduling(PATIENT) as w:
        experiment = await w.api.create(max_restarts=1)
        [allocation] = await w.launcher.running()
        await w.launcher.exit(allocation, 7)
        await _printed(w, allocation)
        await eventually(lambda: _is_explained(w, allocation))
        assert [trial["restarts"] for trial in await w.api.trials(experiment)] == [0]
        async with Service(logs_settings(own_database_url, bus_settings)):
            await w.launcher.running(2)
            assert [line for line in await _lines(w) if "exit code 7" in line]
        assert [trial["restarts"] for trial in await w.api.trials(experiment)] == [1]


async def test_a_match_that_comes_after_the_decision_changes_nothing(
    world: World, own_database_url: str, bus_settings: BusSettings
) -> None:
    async with world.scheduling(PATIENT) as w:
        experiment = await w.api.create(log_policies=[POLICY], max_restarts=0)
        [allocation] = await w.launcher.running()
        await w.launcher.exit(allocation, 1)
        await _printed(w, allocation)
        await eventually(lambda: _is_explained(w, allocation))
        await w.api.sql('UPDATE tasks SET cancel_retries = \'[{"regex": "OOM", "log": "CUDA OOM"}]\'')
        async with Service(logs_settings(own_database_url, bus_settings)):
            await w.api.ended(experiment, "ERROR")
            assert SAID not in await _lines(w)
        [trial] = await w.api.trials(experiment)
        assert "max restarts" in trial["error"]


async def test_success_waits_for_nobody_and_a_kill_not_for_long(world: World) -> None:
    async with world.scheduling(PATIENT) as w:
        completed = await w.api.create()
        [first] = await w.launcher.running()
        await w.launcher.exit(first)
        await _printed(w, first)
        await w.api.ended(completed, "COMPLETED")
        killed = await w.api.create()
        [_, second] = await w.launcher.running(2)
        await w.api.kill(killed)
        await w.api.ended(killed, "CANCELED")
        assert await _is_explained(w, second)
