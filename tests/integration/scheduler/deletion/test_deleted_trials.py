"""A trial that is deleted by itself: nothing of it stays, and its search and its siblings do not notice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from libs.clock import SystemClock
from services.api.access.rights.actions import Action
from services.api.access.rights.rights import UserRights
from services.api.actions.trials.run_actions import for_each
from services.api.actions.trials.run_deletion import deletion_at
from services.api.wire.trials.run_actions import RunsRequest
from services.scheduler.deletion.trials import TrialDeletion
from services.scheduler.settings import SchedulerSettings
from tests.builders import insert_checkpoint, insert_metrics
from tests.harness import eventually
from tests.integration.scheduler.api import OWNER
from tests.integration.scheduler.world import QUICK, USUAL, World

RANDOM: dict[str, Any] = {"name": "random", "metric": "loss", "max_trials": 3, "max_concurrent_trials": 2}
LR: dict[str, Any] = {"lr": {"type": "double", "minval": 0, "maxval": 1}}


@pytest.mark.parametrize("settings", [USUAL, QUICK], ids=["told of it", "not told of it"])
async def test_a_trial_is_deleted_while_its_search_goes_on(world: World, settings: SchedulerSettings) -> None:
    async with world.scheduling(settings) as w:
        experiment = await w.api.create(searcher=RANDOM, hyperparameters=LR, max_restarts=0)
        failing, second = await w.launcher.running(2)
        doomed, kept = (row["id"] for row in (await w.api.trials(experiment))[:2])
        for trial in (doomed, kept):
            async with w.db.transaction() as connection:
                await insert_metrics(connection, trial_id=trial, step=1, values={"loss": 1})
        async with w.db.transaction() as connection:
            columns = {"experiment_id": experiment, "report_time": datetime.now(UTC), "steps_completed": 1}
            uuid = await insert_checkpoint(connection, task_id="t", trial_id=doomed, **columns)
        task = failing.rpartition(".")[0]
        await w.api.sql("INSERT INTO task_logs (task_id, ingested_at, log) VALUES (:t, now(), 'x')", t=task)
        await w.launcher.exit(failing, 1)
        third = (await w.launcher.running(3))[2]

        by_owner: Any = {"rights": UserRights(OWNER), "right": Action.DELETE_RUN}
        (result,) = await for_each(w.db, RunsRequest(run_ids=[doomed]), deletion_at(datetime.now(UTC)), **by_owner)
        assert result.error == ""
        if settings is QUICK:
            await w.api.sql("DELETE FROM outbox WHERE subject LIKE '%deleted' OR subject LIKE '%edited'")

        async def nothing_is_left() -> bool:
            return await w.api.sql("SELECT 1 FROM deleted_trials") == []

        gc = (await w.launcher.running(4))[3]
        assert any(uuid.encode() in file.content for file in w.launcher.specs[gc].spec.files)  # type: ignore[union-attr]
        await eventually(nothing_is_left)
        assert await w.api.sql("SELECT task_id FROM task_logs") == []
        assert await w.api.sql("SELECT trial_id FROM metrics") == [kept]
        for allocation in (gc, second, third):
            await w.launcher.exit(allocation)
        await w.api.ended(experiment, "COMPLETED")
        rows = await w.api.trials(experiment)
        assert [row["state"] for row in rows] == ["COMPLETED", "COMPLETED"]
        assert doomed not in [row["id"] for row in rows]


async def test_lines_that_are_still_to_come_are_waited_for(world: World) -> None:
    wait = USUAL.engine.log_wait_s + 600
    await world.api.sql("INSERT INTO deleted_trials (trial_id, task_ids, deleted_at) VALUES (7, '[\"t\"]', now())")
    await world.api.sql("INSERT INTO task_logs (task_id, ingested_at, log) VALUES ('t', now(), 'x')")
    clock = SystemClock()
    patient = TrialDeletion(db=world.db, clock=clock, log_wait=timedelta(seconds=wait))
    again_s = await patient.reconcile(7)
    assert again_s is not None
    assert wait - 120 < again_s <= wait
    assert await world.api.sql("SELECT task_id FROM task_logs") == ["t"]
    for _ in range(2):
        assert await TrialDeletion(db=world.db, clock=clock, log_wait=timedelta()).reconcile(7) is None
    assert await world.api.sql("SELECT task_id FROM task_logs") == []
