"""The worked lifecycles of docs/reference/experiments.md 5.3, with a launcher that does as it is told."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import pytest

from libs.errors import FailedPrecondition
from libs.events.orders import Order
from libs.tokens import digest
from services.scheduler.settings import EngineSettings, SchedulerSettings
from tests.builders import insert_checkpoint
from tests.harness import eventually
from tests.integration.scheduler.world import World

RANDOM: dict[str, Any] = {"name": "random", "metric": "loss", "max_trials": 3, "max_concurrent_trials": 3}
LR: dict[str, Any] = {"lr": {"type": "double", "minval": 0, "maxval": 1}}
ASHA: dict[str, Any] = {
    "name": "async_halving",
    "metric": "loss",
    "time_metric": "batches",
    "max_time": 9,
    "num_rungs": 3,
    "divisor": 3,
    "max_trials": 3,
    "max_concurrent_trials": 2,
}


async def test_single_trial_that_exits_with_success_completes_its_experiment(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create()
        [allocation] = await w.launcher.running()
        spec = w.launcher.specs[allocation].spec
        assert spec is not None
        assert spec.trial is not None
        [trial] = await w.api.trials(experiment)
        assert allocation == f"{experiment}.{trial['request_id']}.1"
        assert (trial["state"], trial["run_id"], trial["local_id"]) == ("ACTIVE", 1, 1)
        assert spec.name == f"Trial {trial['id']} (Experiment {experiment})"
        assert spec.description == f"exp-{experiment}-trial-{trial['id']}-attempt-1"
        assert spec.owner.username == "determined"
        assert spec.trial.trial_run_id == 1
        assert await w.api.sql("SELECT submitted_at FROM jobs") == [spec.submitted_at]
        assert spec.trial.latest_checkpoint is None
        assert spec.shared_fs_host_path == "/checkpoints"
        assert spec.trial.ssh_private_key.startswith("-----BEGIN OPENSSH PRIVATE KEY-----")
        assert set(spec.ports.values()) == {12350, 12360, 12365, 29400}
        [kept] = await w.api.sql("SELECT token_hash FROM allocation_sessions")
        assert kept == digest(spec.session_token)
        await w.launcher.exit(allocation)
        await w.api.ended(experiment, "COMPLETED")
        row = await w.api.experiment(experiment)
        assert row is not None
        assert row["progress"] == 1.0
        assert row["end_time"] is not None
        [trial] = await w.api.trials(experiment)
        assert (trial["state"], trial["restarts"], trial["run_id"]) == ("COMPLETED", 0, 1)
        assert await w.api.sql("SELECT count(*) FROM searcher_snapshots") == [0]
        assert await w.api.sql("SELECT count(*) FROM allocation_sessions WHERE revoked_at IS NULL") == [0]
        assert await w.api.sql("SELECT count(*) FROM user_sessions WHERE revoked_at IS NULL") == [0]
        [row] = await w.api.allocations()
        assert row["exit_reason"].startswith("allocation stopped early after")
        await eventually(lambda: not w.launcher.orders, what="the order is withdrawn")


async def test_order_follows_submission_quickly(world: World) -> None:
    async with world.scheduling() as w:
        await w.api.create()
        await w.launcher.running(1)
        times = []
        for count in range(2, 7):
            await asyncio.sleep(0.12)  # a plan that follows another is put off on purpose
            began = time.monotonic()
            await w.api.create()
            await w.launcher.running(count)
            times.append(time.monotonic() - began)
        assert min(times) < 2, times  # 0.05 on a machine that has nothing else to do, 10 when nobody is told


async def test_created_paused_has_a_trial_and_no_allocation(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(activate=False)
        [trial] = await eventually(lambda: w.api.trials(experiment))
        assert (trial["state"], trial["run_id"]) == ("PAUSED", 0)
        assert await w.api.allocations() == []
        await w.api.activate(experiment)
        assert await w.launcher.running() == [f"{experiment}.{trial['request_id']}.1"]


async def test_pause_preempts_and_activate_runs_again_from_the_checkpoint(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create()
        [first] = await w.launcher.running()
        [trial] = await w.api.trials(experiment)
        await w.api.ready(first)
        await w.api.pause(experiment)
        await eventually(lambda: _is_preempted(w, first))
        of_trial = {"task_id": first.rpartition(".")[0], "trial_id": trial["id"], "experiment_id": experiment}
        async with w.db.transaction() as connection:
            await insert_checkpoint(connection, uuid="ckpt", steps_completed=40, **of_trial)
        await w.api.ack(first)
        await w.launcher.exit(first)
        await eventually(lambda: _is_exit_processed(w, first))
        [trial] = await w.api.trials(experiment)
        assert (trial["state"], trial["run_id"], trial["restarts"]) == ("PAUSED", 1, 0)
        await w.api.activate(experiment)
        second = (await w.launcher.running(2))[1]
        assert second == f"{experiment}.{trial['request_id']}.2"
        spec = w.launcher.specs[second].spec
        assert spec is not None
        assert spec.trial is not None
        assert (spec.trial.latest_checkpoint, spec.trial.steps_completed) == ("ckpt", 40)


async def test_paused_trial_that_exits_without_acknowledging_is_done(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create()
        [allocation] = await w.launcher.running()
        await w.api.ready(allocation)
        await w.api.pause(experiment)
        await eventually(lambda: _is_preempted(w, allocation))
        await w.launcher.exit(allocation)
        await w.api.ended(experiment, "COMPLETED")


async def test_pause_before_ready_kills_and_activate_runs_again(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create()
        [first] = await w.launcher.running()
        await w.api.pause(experiment)
        await eventually(lambda: _is_exit_processed(w, first))
        assert (await w.api.allocation(first))["exit_reason"].startswith("allocation killed after")
        assert [t["state"] for t in await w.api.trials(experiment)] == ["PAUSED"]
        await w.api.activate(experiment)
        await w.launcher.running(2)


async def test_cancel_while_running_preempts_and_ends_canceled(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create()
        [allocation] = await w.launcher.running()
        await w.api.ready(allocation)
        await w.api.cancel(experiment)
        await eventually(lambda: _is_preempted(w, allocation))
        await w.api.ack(allocation)
        await w.launcher.exit(allocation)
        await w.api.ended(experiment, "CANCELED")
        assert [t["state"] for t in await w.api.trials(experiment)] == ["CANCELED"]


async def test_cancel_of_a_task_that_fails_meanwhile_ends_the_trial_in_error(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create()
        [allocation] = await w.launcher.running()
        await w.api.ready(allocation)
        await w.api.cancel(experiment)
        await eventually(lambda: _is_preempted(w, allocation))
        await w.launcher.exit(allocation, 1)
        await w.api.ended(experiment, "CANCELED")
        assert [t["state"] for t in await w.api.trials(experiment)] == ["ERROR"]


async def test_cancel_before_any_allocation_ends_at_once(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(activate=False)
        await eventually(lambda: w.api.trials(experiment))
        await w.api.cancel(experiment)
        await w.api.ended(experiment, "CANCELED")
        assert [t["state"] for t in await w.api.trials(experiment)] == ["CANCELED"]


async def test_kill_of_what_waits_for_slots_ends_at_once(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(slots=64)
        await eventually(lambda: _wait_reasons(w))
        missing = "needs 64 slots on one node; the largest node has 8"
        assert await _wait_reasons(w) == [f"the resource pool is too small for it, even when empty: {missing}"]
        await w.api.kill(experiment)
        await w.api.ended(experiment, "CANCELED")
        assert (await w.api.allocations())[0]["exit_reason"].startswith("allocation aborted after")
        assert w.launcher.specs == {}


async def test_kill_after_a_cancel_that_hangs(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create()
        [allocation] = await w.launcher.running()
        await w.api.ready(allocation)
        await w.api.cancel(experiment)
        await eventually(lambda: _is_preempted(w, allocation))
        await w.api.kill(experiment)
        await w.api.ended(experiment, "CANCELED")
        assert w.launcher.orders == {} or w.launcher.orders[allocation].desired == "stop"
        assert [t["state"] for t in await w.api.trials(experiment)] == ["CANCELED"]


@pytest.mark.parametrize(
    ("timeout_s", "reason"), [(0, "user requested cancel"), (1, "allocation did not preempt in 0:00:01")]
)
async def test_what_ignores_its_preemption_is_killed_in_time(world: World, timeout_s: int, reason: str) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(preemption_timeout=timeout_s)
        [allocation] = await w.launcher.running()
        await w.api.ready(allocation)
        await w.api.cancel(experiment)
        await w.api.ended(experiment, "CANCELED")
        row = await w.api.allocation(allocation)
        assert row["kill_reason"] == reason
        assert [t["state"] for t in await w.api.trials(experiment)] == ["CANCELED"]


async def test_always_failing_trial_runs_max_restarts_times_more(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(max_restarts=2)
        for attempt in range(1, 4):
            allocation = (await w.launcher.running(attempt))[-1]
            [trial] = await w.api.trials(experiment)
            assert (trial["restarts"], trial["run_id"]) == (attempt - 1, attempt)
            await w.launcher.exit(allocation, 7)
        await w.api.ended(experiment, "ERROR")
        [trial] = await w.api.trials(experiment)
        assert (trial["state"], trial["restarts"], trial["run_id"]) == ("ERROR", 3, 3)
        row = await w.api.experiment(experiment)
        assert row is not None
        assert row["error"] == (
            f"trial {trial['id']}: trial exceeded max restarts: allocation failed: resources failed with non-zero exit"
            " code:  (exit code 7)"
        )
        assert {r["status_code"] for r in await w.api.allocations(experiment)} == {7}


async def test_tokens_of_a_task_end_with_its_allocation_though_its_experiment_goes_on(world: World) -> None:
    async with world.scheduling() as w:
        await w.api.create(max_restarts=2)
        [first] = await w.launcher.running()
        await w.launcher.exit(first, 7)
        second = (await w.launcher.running(2))[-1]
        for table in ("allocation_sessions", "user_sessions"):
            assert await w.api.sql(f"SELECT allocation_id FROM {table} WHERE revoked_at IS NULL") == [second]


async def test_lost_node_is_not_held_against_the_trial(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(max_restarts=0)
        [first] = await w.launcher.running()
        await w.launcher.lose_node(first)
        await w.launcher.running(2)
        [trial] = await w.api.trials(experiment)
        assert (trial["restarts"], trial["run_id"]) == (0, 2)


async def _seal_log(world: World, allocation: str) -> None:
    """All that the one pod of an allocation printed is stored."""
    for stream in ("stdout", "stderr"):
        await world.api.sql(
            "INSERT INTO log_streams (stream_key, task_id, allocation_id, contiguous, next_seq, missing, sealed_at,"
            " opened_at, written_at) VALUES (:key, :task, :allocation, true, 1, '{}', now(), now(), now())",
            key=f"{allocation}/{stream}",
            task=allocation.rpartition(".")[0],
            allocation=allocation,
        )


async def test_trial_ends_when_its_log_is_stored(world: World) -> None:
    patient = SchedulerSettings(engine=EngineSettings(log_wait_s=60))
    async with world.scheduling(patient) as w:
        experiment = await w.api.create()
        [allocation] = await w.launcher.running()
        await w.launcher.exit(allocation, 0)
        await eventually(lambda: _is_over(w, allocation))
        [trial] = await w.api.trials(experiment)
        assert trial["state"] == "ACTIVE", "whoever waits for its end reads its log next"
        await _seal_log(w, allocation)
        await w.api.ended(experiment, "COMPLETED")


async def test_what_is_lost_of_a_log_is_not_waited_for(world: World) -> None:
    policy = {"name": "no", "pattern": "OOM", "action": "cancel_retries"}
    async with world.scheduling() as w:
        await w.api.create(log_policies=[policy], max_restarts=1)
        [allocation] = await w.launcher.running()
        await w.launcher.exit(allocation, 1)
        await eventually(lambda: _is_over(w, allocation))
        await _seal_log(w, allocation)
        await w.api.sql(
            "UPDATE log_streams SET sealed_at = NULL, end_seq = 1, missing = '{0,1}' WHERE allocation_id = :allocation",
            allocation=allocation,
        )
        await w.launcher.running(2)


async def test_cancel_retries_match_ends_the_trial_without_a_restart(world: World) -> None:
    policy = {"name": "no", "pattern": "OOM", "action": "cancel_retries"}
    async with world.scheduling() as w:
        experiment = await w.api.create(log_policies=[policy])
        [allocation] = await w.launcher.running()
        task = allocation.rpartition(".")[0]
        await w.launcher.exit(allocation, 1)
        await eventually(lambda: _is_over(w, allocation))
        [trial] = await w.api.trials(experiment)
        assert trial["state"] == "ACTIVE", "the decision waits for the log"
        await w.api.sql(
            'UPDATE tasks SET cancel_retries = \'[{"regex": "OOM", "log": "CUDA OOM"}]\' WHERE task_id = :task',
            task=task,
        )
        await _seal_log(w, allocation)
        await w.api.ended(experiment, "ERROR")
        [trial] = await w.api.trials(experiment)
        assert (trial["state"], trial["restarts"]) == ("ERROR", 0)
        assert "don't retry policy" in trial["error"]


async def test_search_completes_when_only_some_trials_fail(world: World) -> None:
    async with world.scheduling() as w:
        searcher = {**RANDOM, "max_trials": 2}
        experiment = await w.api.create(searcher=searcher, hyperparameters=LR, max_restarts=0)
        first, second = await w.launcher.running(2)
        await w.launcher.exit(first, 1)
        await w.launcher.exit(second, 0)
        await w.api.ended(experiment, "COMPLETED")
        assert sorted(t["state"] for t in await w.api.trials(experiment)) == ["COMPLETED", "ERROR"]


async def test_killing_one_trial_lets_the_search_create_the_next(world: World) -> None:
    async with world.scheduling() as w:
        searcher = {**RANDOM, "max_trials": 3, "max_concurrent_trials": 2}
        experiment = await w.api.create(searcher=searcher, hyperparameters=LR)
        await w.launcher.running(2)
        await w.api.kill_trial((await w.api.trials(experiment))[0]["id"])
        allocations = await w.launcher.running(3)
        for allocation in allocations:
            if (await w.api.allocation(allocation))["released_at"] is None:
                await w.launcher.exit(allocation)
        await w.api.ended(experiment, "COMPLETED")
        assert [t["state"] for t in await w.api.trials(experiment)] == ["CANCELED", "COMPLETED", "COMPLETED"]


async def test_killing_all_trials_one_by_one_cancels_the_search(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(searcher=RANDOM, hyperparameters=LR)
        await w.launcher.running(3)
        for trial in await w.api.trials(experiment):
            await w.api.kill_trial(trial["id"])
        await w.api.ended(experiment, "CANCELED")


async def test_asha_stops_a_trial_by_asking_it_to_leave(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(searcher=ASHA, hyperparameters=LR)
        allocations = await w.launcher.running(2)
        for allocation in allocations:
            await w.api.ready(allocation)
        good, bad = await w.api.trials(experiment)
        await w.api.tell_search(good["id"], "validation", {"metrics": {"loss": 0.1, "batches": 1}})
        await w.api.tell_search(bad["id"], "validation", {"metrics": {"loss": 0.9, "batches": 1}})
        left = f"{experiment}.{bad['request_id']}.1"
        await eventually(lambda: _is_preempted(w, left))
        assert (await w.api.trials(experiment))[1]["state"] == "STOPPING_COMPLETED"
        await w.launcher.running(3)
        await w.api.ack(left)
        await w.launcher.exit(left)
        await eventually(lambda: _is_exit_processed(w, left))
        assert [t["state"] for t in await w.api.trials(experiment)] == ["ACTIVE", "COMPLETED", "ACTIVE"]
        assert await w.api.state(experiment) == "ACTIVE"


async def test_trials_that_came_with_the_experiment_are_not_made_again(world: World) -> None:
    begun = await world.api.create(searcher=RANDOM, hyperparameters=LR)
    forgotten = await world.api.create(searcher=RANDOM, hyperparameters=LR)
    await world.api.sql("DELETE FROM searcher_snapshots WHERE experiment_id = :e", e=forgotten)
    empty = await world.api.create(searcher=RANDOM, hyperparameters=LR)
    await world.api.forget_search(empty)
    before = {one: [t["request_id"] for t in await world.api.trials(one)] for one in (begun, forgotten)}
    async with world.scheduling() as w:
        await w.launcher.offer(9)
        for allocation in await w.launcher.running(9):
            await w.launcher.exit(allocation)
        for experiment in (begun, forgotten, empty):
            await w.api.ended(experiment, "COMPLETED")
        after = {one: [t["request_id"] for t in await w.api.trials(one)] for one in (begun, forgotten, empty)}
        assert after == {**before, empty: before[begun]}


async def test_invalid_hyperparameters_are_replaced(world: World) -> None:
    async with world.scheduling() as w:
        searcher = {**RANDOM, "max_trials": 1, "max_concurrent_trials": 1}
        experiment = await w.api.create(searcher=searcher, hyperparameters=LR)
        [first] = await w.launcher.running()
        [trial] = await w.api.trials(experiment)
        await w.api.report_invalid_hp(trial["id"])
        await w.launcher.exit(first)
        second = (await w.launcher.running(2))[1]
        await w.launcher.exit(second)
        await w.api.ended(experiment, "COMPLETED")
        assert [t["state"] for t in await w.api.trials(experiment)] == ["COMPLETED", "COMPLETED"]


async def test_search_whose_code_refuses_every_point_ends_in_error(world: World) -> None:
    async def refuse(order: Order) -> None:
        await world.launcher.see(order.allocation, "RUNNING")
        task = order.allocation.rpartition(".")[0]
        [trial] = await world.api.sql("SELECT trial_id FROM trial_tasks WHERE task_id = :t", t=task)
        await world.api.report_invalid_hp(trial)
        await world.launcher.exit(order.allocation)

    world.launcher.on_run = refuse
    experiment = await world.api.create(searcher={**RANDOM, "max_concurrent_trials": 1}, hyperparameters=LR)
    async with world.scheduling() as w:
        await w.api.ended(experiment, "ERROR")
        assert [t["state"] for t in await w.api.trials(experiment)] == ["COMPLETED"] * 4
        row = await w.api.experiment(experiment)
        assert row is not None
        assert "the code refused the hyperparameters of 4 trials in a row" in row["error"]


async def test_trial_that_announces_its_exit_and_stays_is_killed(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create()
        await w.launcher.running()
        [trial] = await w.api.trials(experiment)
        await w.api.report_invalid_hp(trial["id"], deadline_s=0.5)
        await w.api.ended(experiment, "COMPLETED")
        assert [t["state"] for t in await w.api.trials(experiment)] == ["CANCELED"]


async def test_search_that_cannot_begin_ends_its_experiment_in_error(world: World) -> None:
    async with world.scheduling() as w:
        bad = {"x": {"type": "categorical", "vals": [1]}}
        experiment = await w.api.create(activate=False, hyperparameters=bad)
        await eventually(lambda: w.api.trials(experiment))
        await w.api.sql("UPDATE searcher_snapshots SET snapshot = '{}' WHERE experiment_id = :e", e=experiment)
        # A last look at the new experiment may have met the snapshot before.
        with suppress(FailedPrecondition):
            await w.api.activate(experiment)
        await w.api.ended(experiment, "ERROR")
        row = await w.api.experiment(experiment)
        assert row is not None
        assert "KeyError" in row["error"]
        assert [t["state"] for t in await w.api.trials(experiment)] == ["ERROR"]


async def test_changed_pool_moves_what_waits(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(slots=64)
        await eventually(lambda: _wait_reasons(w))
        await w.api.sql(
            "UPDATE experiments SET config = jsonb_set(config, '{resources,slots_per_trial}', '1') WHERE id = :e",
            e=experiment,
        )
        await w.api.sql("UPDATE allocations SET pool = 'elsewhere'")
        async with w.db.transaction() as connection:
            from libs.db.outbox import announce
            from libs.events.changes import ExperimentChanged

            await announce(connection, ExperimentChanged(experiment_id=experiment, what="edited", state="ACTIVE"))
        [allocation] = await w.launcher.running()
        assert allocation.endswith(".2")
        assert w.launcher.specs[allocation].pool == "default"


async def _is_preempted(w: World, allocation: str) -> bool:
    return (await w.api.allocation(allocation))["preempted_at"] is not None


async def _is_exit_processed(w: World, allocation: str) -> bool:
    return bool((await w.api.allocation(allocation))["exit_processed"])


async def _is_over(w: World, allocation: str) -> bool:
    return (await w.api.allocation(allocation))["released_at"] is not None


async def _wait_reasons(w: World) -> list[str]:
    return [row["wait_reason"] for row in await w.api.allocations() if row["wait_reason"]]
