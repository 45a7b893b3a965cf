"""What follows the end of an experiment: checkpoint GC, deletion, and being continued."""

from __future__ import annotations

from typing import Any

import msgspec

from libs.clock import SystemClock
from libs.db.outbox import announce
from libs.events.changes import AllocationChanged, ExperimentChanged
from libs.events.orders import Environment, TaskSpec
from libs.tasks.stored import StoredTask, to_document
from services.scheduler.allocations.reconciler import AllocationReconciler
from services.scheduler.deletion.workspaces import WorkspaceDeletion
from tests.builders import insert_checkpoint, insert_metrics, insert_notebook, insert_project, insert_workspace
from tests.harness import eventually
from tests.integration.scheduler.world import World

LR: dict[str, Any] = {"lr": {"type": "double", "minval": 0, "maxval": 1}}


async def test_superfluous_checkpoints_are_deleted_by_a_task(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create()
        [allocation] = await w.launcher.running()
        await _checkpoints(w, experiment, losses=[0.1, 0.2, 0.3, 0.4])
        await w.launcher.exit(allocation)
        await w.api.ended(experiment, "COMPLETED")
        gc = (await w.launcher.running(2))[1]
        spec = _spec(w, gc)
        assert (spec.task_type, spec.slots, spec.name) == (
            "CHECKPOINT_GC",
            0,
            f"Checkpoint GC (Experiment {experiment})",
        )
        assert spec.description == f"gc-{experiment}"
        assert spec.argv == (
            "--experiment-id",
            str(experiment),
            "--storage-config",
            "/run/determined/checkpoint_gc/storage_config.json",
            "--delete",
            "/run/determined/checkpoint_gc/checkpoints_to_delete.json",
            "--globs",
            "/run/determined/checkpoint_gc/checkpoints_globs.json",
        )
        files = {file.path: msgspec.json.decode(file.content) for file in spec.files}
        # The best one (the first) and the latest one stay.
        assert files["checkpoint_gc/checkpoints_to_delete.json"] == ["c2", "c3"]
        assert files["checkpoint_gc/checkpoints_globs.json"] == ["**/*"]
        assert files["checkpoint_gc/storage_config.json"]["host_path"] == "/checkpoints"
        assert spec.shared_fs_host_path == "/checkpoints"
        await w.launcher.exit(gc)
        await eventually(lambda: _is_ended(w, spec.task))
        assert await w.api.sql("SELECT count(*) FROM user_sessions WHERE revoked_at IS NULL") == [0]


async def test_deletion_removes_files_then_logs_then_rows(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create()
        other = await w.api.create(activate=False)
        [allocation] = await w.launcher.running()
        await _checkpoints(w, experiment, losses=[0.1])
        task = allocation.rpartition(".")[0]
        await w.api.sql("INSERT INTO task_logs (task_id, ingested_at, log) VALUES (:t, now(), 'x')", t=task)
        await w.launcher.exit(allocation)
        await w.api.ended(experiment, "COMPLETED")
        await w.api.delete(experiment)
        gc = (await w.launcher.running(2))[1]
        assert "--delete-tensorboards" in _spec(w, gc).argv
        assert await w.api.state(experiment) == "DELETING"
        await w.api.sql("UPDATE checkpoints SET state = 'DELETED'")
        await w.launcher.exit(gc)
        await eventually(lambda: _is_gone(w, experiment))
        for table in ("trial_tasks", "tasks", "allocations", "task_logs", "metrics", "checkpoints", "jobs", "trials"):
            left = await w.api.sql(f"SELECT count(*) FROM {table}")
            expected = 1 if table in ("trial_tasks", "tasks", "jobs", "trials") else 0
            assert left == [expected], table
        assert await w.api.state(other) == "PAUSED"


async def test_deletion_that_fails_says_so_and_may_be_repeated(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(activate=False)
        await eventually(lambda: w.api.trials(experiment))
        await _checkpoints(w, experiment, losses=[0.1])
        await w.api.kill(experiment)
        await w.api.ended(experiment, "CANCELED")
        await w.api.delete(experiment)
        [first] = await w.launcher.running()
        await w.launcher.exit(first, 1)
        await w.api.ended(experiment, "DELETE_FAILED")
        row = await w.api.experiment(experiment)
        assert row is not None
        assert "checkpoint GC failed" in row["error"]
        await w.api.delete(experiment)
        second = (await w.launcher.running(2))[1]
        await w.launcher.exit(second)
        await eventually(lambda: _is_gone(w, experiment))


async def test_workspace_goes_with_everything_in_it(world: World) -> None:
    async with world.scheduling() as w:
        await _doomed_workspace(w)
        experiment = await w.api.create()
        await w.api.move(experiment, 2)
        [trial_allocation] = await w.launcher.running()
        await _checkpoints(w, experiment, losses=[0.1])
        notebook = await _launch_notebook(w, workspace=2)
        await w.launcher.running(2)
        await w.api.delete_workspace(2)
        gc = (await w.launcher.running(3))[2]
        assert (await w.api.allocation(trial_allocation))["killed_at"] is not None
        assert (await w.api.allocation(notebook))["kill_reason"] == "its workspace is being deleted"
        await w.launcher.exit(gc)
        await eventually(lambda: _no_workspace(w))
        assert await w.api.sql("SELECT count(*) FROM experiments") == [0]
        assert await w.api.sql("SELECT count(*) FROM tasks") == [0]


async def test_workspace_takes_along_what_waits_runs_and_has_ended_in_it(world: World) -> None:
    async with world.scheduling() as w:
        async with w.db.transaction() as connection:
            workspace = await insert_workspace(connection, name="doomed", owner_id=2)
        ended = await _launch_notebook(w, workspace=workspace)
        await w.launcher.running()
        await w.launcher.exit(ended)
        await eventually(lambda: _is_ended(w, ended.rpartition(".")[0]))
        await _launch_notebook(w, workspace=workspace)
        await w.launcher.running(2)
        await w.launcher.offer(slots=0)
        waits = await _launch_notebook(w, workspace=workspace)
        elsewhere = await _launch_notebook(w, workspace=1)
        await w.api.delete_workspace(workspace)
        await eventually(lambda: _no_workspace(w))
        assert waits not in w.launcher.specs
        left = elsewhere.rpartition(".")[0]
        assert await w.api.sql("SELECT task_id FROM tasks") == [left]
        assert await w.api.sql("SELECT task_id FROM interactive_tasks") == [left]
        assert await w.api.sql("SELECT count(*) FROM jobs") == [1]
        assert await w.api.sql("SELECT count(*) FROM allocation_sessions WHERE revoked_at IS NULL") == [0]
        assert await w.api.sql(
            "SELECT count(*) FROM user_sessions WHERE allocation_id IS NOT NULL AND revoked_at IS NULL"
        ) == [0]


async def test_workspace_in_which_everything_has_ended_leaves_no_tasks(world: World) -> None:
    async with world.scheduling() as w:
        async with w.db.transaction() as connection:
            workspace = await insert_workspace(connection, name="doomed", owner_id=2)
        ended = await _launch_notebook(w, workspace=workspace)
        await w.launcher.running()
        await w.launcher.exit(ended)
        await eventually(lambda: _is_ended(w, ended.rpartition(".")[0]))
        await w.api.delete_workspace(workspace)
        await eventually(lambda: _no_workspace(w))
        assert await w.api.sql("SELECT count(*) FROM tasks") == [0]


async def test_workspace_whose_experiment_cannot_be_deleted_says_why(world: World) -> None:
    async with world.scheduling() as w:
        await _doomed_workspace(w)
        experiment = await w.api.create(activate=False)
        await eventually(lambda: w.api.trials(experiment))
        await w.api.move(experiment, 2)
        await _checkpoints(w, experiment, losses=[0.1])
        await w.api.delete_workspace(2)
        [gc] = await w.launcher.running()
        await w.launcher.exit(gc, 1)
        await w.api.ended(experiment, "DELETE_FAILED")
        [state] = await w.api.sql("SELECT state || error_message FROM workspaces WHERE id = 2")
        assert state.startswith(f"DELETE_FAILEDexperiment {experiment}: checkpoint GC failed")


async def test_workspace_stays_while_versions_of_models_come_from_it(world: World) -> None:
    async with world.scheduling() as w:
        await _doomed_workspace(w)
        experiment = await w.api.create(activate=False)
        await eventually(lambda: w.api.trials(experiment))
        await w.api.move(experiment, 2)
        await _checkpoints(w, experiment, losses=[0.1])
        await w.api.sql("INSERT INTO models (name, owner_id, workspace_id) VALUES ('mnist', 2, 1)")
        await w.api.sql("INSERT INTO model_versions (model_id, version, checkpoint_uuid) VALUES (1, 1, 'c1')")
        await w.api.delete_workspace(2)
        await w.api.ended(experiment, "DELETE_FAILED")
        reason = 'checkpoints are registered as model versions: version 1 of model "mnist"'
        row = await w.api.experiment(experiment)
        assert row is not None
        assert row["error"] == reason
        [state] = await w.api.sql("SELECT state || error_message FROM workspaces WHERE id = 2")
        assert state == f"DELETE_FAILEDexperiment {experiment}: {reason}"
        assert await w.api.sql("SELECT state FROM checkpoints") == ["COMPLETED"]
        await w.api.sql("DELETE FROM models")
        await w.api.delete_workspace(2)
        [gc] = await w.launcher.running()
        await w.launcher.exit(gc)
        await eventually(lambda: _no_workspace(w))


async def test_workspace_waits_for_what_deletes_files_of_an_experiment_that_has_left_it(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(activate=False)
        await eventually(lambda: w.api.trials(experiment))
        await w.api.remove_files(experiment, uuids=["a"], globs=["x"])
        [gc] = await w.launcher.running()
        await w.api.sql("INSERT INTO workspaces (name, owner_id, state) VALUES ('doomed', 2, 'DELETING')")
        await w.api.sql("UPDATE tasks SET workspace_id = 2 WHERE task_type = 'CHECKPOINT_GC'")
        killing = AllocationReconciler(db=w.db, clock=SystemClock(), ended=lambda _: None)
        deletion = WorkspaceDeletion(db=w.db, allocations=killing)
        assert await deletion.advance_workspace(2) is not None
        assert not await _no_workspace(w)
        assert (await w.api.allocation(gc))["killed_at"] is None
        await w.launcher.exit(gc)
        await eventually(lambda: _is_ended(w, gc.rpartition(".")[0]))
        assert await deletion.advance_workspace(2) is None
        assert await _no_workspace(w)
        assert await w.api.state(experiment) == "PAUSED"


async def test_task_whose_workspace_is_gone_ends_and_holds_up_nobody(world: World) -> None:
    async with world.scheduling() as w:
        notebook = await _launch_notebook(w, workspace=77)
        await w.api.create()
        [allocation] = await w.launcher.running()
        assert allocation != notebook
        row = await eventually(lambda: _over(w, notebook))
        assert row["exit_reason"] == "allocation handler crashed due to error: its workspace is gone"
        await eventually(lambda: _is_ended(w, notebook.rpartition(".")[0]))


async def test_notebook_runs_and_ends_through_the_same_queue(world: World) -> None:
    async with world.scheduling() as w:
        allocation = await _launch_notebook(w, workspace=1)
        await w.launcher.running()
        spec = _spec(w, allocation)
        assert (spec.task_type, spec.environment.image, spec.argv) == ("NOTEBOOK", "image", ("a",))
        assert spec.shm_size_bytes == 4294967296
        await w.launcher.exit(allocation)
        await eventually(lambda: _is_ended(w, spec.task))
        assert await w.api.sql("SELECT count(*) FROM user_sessions WHERE revoked_at IS NULL") == [0]


async def test_continued_experiment_runs_what_did_not_complete_in_new_tasks(world: World) -> None:
    async with world.scheduling() as w:
        searcher = {"name": "random", "metric": "loss", "max_trials": 2, "max_concurrent_trials": 2}
        experiment = await w.api.create(searcher=searcher, hyperparameters=LR, max_restarts=0)
        bad, good = await w.launcher.running(2)
        await w.launcher.exit(bad, 1)
        await w.launcher.exit(good)
        await w.api.ended(experiment, "COMPLETED")
        before = await w.api.trials(experiment)
        await w.api.sql(
            "UPDATE experiments SET state = 'ACTIVE', end_time = NULL, progress = 0 WHERE id = :e", e=experiment
        )
        async with w.db.transaction() as connection:
            await announce(connection, ExperimentChanged(experiment_id=experiment, what="state", state="ACTIVE"))
        again = (await w.launcher.running(3))[2]
        assert again == bad.rpartition(".")[0] + "-1.2"
        await w.launcher.exit(again)
        await w.api.ended(experiment, "COMPLETED")
        after = await w.api.trials(experiment)
        assert [t["id"] for t in after] == [t["id"] for t in before]
        assert [(t["state"], t["restarts"]) for t in after] == [("COMPLETED", 0), ("COMPLETED", 0)]
        assert len(w.launcher.specs) == 3


async def test_configuration_too_large_for_an_order_ends_its_trial_and_nothing_else(world: World) -> None:
    async with world.scheduling() as w:
        large = await w.api.create(data={"x": "y" * 1_100_000})
        small = await w.api.create()
        await w.api.ended(large, "ERROR")
        [trial] = await w.api.trials(large)
        assert (trial["state"], trial["restarts"]) == ("ERROR", 0)
        [allocation] = await w.launcher.running()
        await w.launcher.exit(allocation)
        await w.api.ended(small, "COMPLETED")


async def _checkpoints(w: World, experiment: int, *, losses: list[float]) -> None:
    [trial] = await w.api.trials(experiment)
    of_trial = {"trial_id": trial["id"], "experiment_id": experiment}
    async with w.db.transaction() as connection:
        for step, loss in enumerate(losses, start=1):
            await insert_checkpoint(connection, uuid=f"c{step}", steps_completed=step, **of_trial)
            await insert_metrics(connection, trial_id=trial["id"], step=step, values={"loss": loss})


async def _doomed_workspace(w: World) -> None:
    """Workspace 2 with project 2."""
    async with w.db.transaction() as connection:
        workspace = await insert_workspace(connection, name="doomed", owner_id=2)
        await insert_project(connection, workspace_id=workspace, name="p", owner_id=2)


async def _launch_notebook(w: World, *, workspace: int) -> str:
    stored = StoredTask(description="cmd-x", environment=Environment(image="image"), argv=("a",))
    async with w.db.transaction() as connection:
        common = {"owner_id": 2, "workspace_id": workspace}
        allocation = await insert_notebook(connection, job=common, task={**common, "spec": to_document(stored)})
        task = allocation.rpartition(".")[0]
        requested = AllocationChanged(allocation_id=allocation, task_id=task, what="requested", pool="default")
        await announce(connection, requested)
    return allocation


def _spec(w: World, allocation: str) -> TaskSpec:
    spec = w.launcher.specs[allocation].spec
    assert spec is not None
    return spec


async def _over(w: World, allocation: str) -> Any:
    row = await w.api.allocation(allocation)
    return row if row["state"] == "TERMINATED" else None


async def _is_ended(w: World, task: str) -> bool:
    return await w.api.sql("SELECT end_time IS NOT NULL FROM tasks WHERE task_id = :t", t=task) == [True]


async def _is_gone(w: World, experiment: int) -> bool:
    return await w.api.experiment(experiment) is None


async def _no_workspace(w: World) -> bool:
    return await w.api.sql("SELECT id FROM workspaces WHERE id = 2") == []
