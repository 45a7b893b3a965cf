"""Files that somebody asks to be deleted: a task for each request, whatever its experiment is doing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import insert

from libs.cluster.config import ClusterConfig, ResourceManagerConfig
from libs.db.tables.checkpoints import checkpoint_gc_requests, storage_backends
from libs.events.orders import TaskSpec
from libs.ids import new_uuid
from tests.builders import insert_checkpoint
from tests.harness import eventually
from tests.integration.scheduler.world import QUICK, World, background

S3 = {"type": "s3", "bucket": "b"}


async def test_each_request_becomes_a_task(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(activate=False)
        await eventually(lambda: w.api.trials(experiment))
        storage = await _storage(w, S3)
        await w.api.remove_files(experiment, uuids=["a", "b"], globs=["**/*"], storage_id=storage, notify=False)
        await w.api.remove_files(experiment, uuids=["c"], globs=[], notify=False)
        await w.api.delete_tensorboard_files(experiment)
        specs = {tuple(_files(spec)["checkpoints_to_delete"]): spec for spec in await _specs(w, 3)}
        first, second, third = specs["a", "b"], specs["c",], specs[()]
        assert (_files(first)["storage_config"], _files(first)["checkpoints_globs"]) == (S3, ["**/*"])
        assert "--delete-tensorboards" not in first.argv
        assert _files(second)["checkpoints_globs"] == []
        assert "--globs" in second.argv
        assert _files(second)["storage_config"]["host_path"] == "/checkpoints"
        assert third.argv[-1] == "--delete-tensorboards"
        assert "--delete" not in third.argv
        assert await _requests(w) == 0
        assert {t["state"] for t in await w.api.trials(experiment)} == {"PAUSED"}
        for allocation in await w.launcher.running(3):
            await w.launcher.exit(allocation)
        await eventually(lambda: _all_ended(w))
        assert await w.api.state(experiment) == "PAUSED"


async def test_what_is_too_much_for_one_task_is_done_by_several(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(activate=False)
        uuids = [new_uuid() for _ in range(12_001)]
        await w.api.remove_files(experiment, uuids=uuids, globs=["**/*"])
        specs = await _specs(w, 3)
        assert sorted(uuid for spec in specs for uuid in _files(spec)["checkpoints_to_delete"]) == sorted(uuids)


async def test_where_no_pool_is_the_default_the_first_one_does(world: World) -> None:
    manager = ResourceManagerConfig(
        no_default_resource_pools=True, default_compute_resource_pool="", default_aux_resource_pool=""
    )
    world.cluster = ClusterConfig(resource_manager=manager)
    async with world.scheduling() as w:
        experiment = await w.api.create(activate=False)
        await w.api.remove_files(experiment, uuids=["a"], globs=["x"])
        (spec,) = await _specs(w, 1)
        assert spec.task_type == "CHECKPOINT_GC"


async def test_experiment_that_is_over_is_looked_at_too(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create()
        [allocation] = await w.launcher.running()
        await w.launcher.exit(allocation)
        await w.api.ended(experiment, "COMPLETED")
        await w.api.remove_files(experiment, uuids=["a"], globs=["x"])
        gc = (await w.launcher.running(2))[1]
        assert _spec(w, gc).task_type == "CHECKPOINT_GC"
        assert await w.api.state(experiment) == "COMPLETED"


async def test_requests_are_found_without_a_notification(world: World) -> None:
    await world.launcher.offer()
    async with background(world.scheduler(QUICK).run()):
        experiment = await world.api.create(activate=False)
        await eventually(lambda: world.api.trials(experiment))
        await world.api.remove_files(experiment, uuids=["a"], globs=["x"], notify=False)
        await eventually(lambda: _nothing_asked(world))
    assert len(await world.api.allocations()) == 1


async def test_a_request_for_nothing_is_done_with(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(activate=False)
        await eventually(lambda: w.api.trials(experiment))
        async with w.db.transaction() as connection:
            await connection.execute(insert(checkpoint_gc_requests).values(experiment_id=experiment))
        await w.api.set_priority(experiment, 43)
        await eventually(lambda: _nothing_asked(w))
        assert await w.api.allocations() == []


async def test_deletion_does_not_wait_for_requests(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(activate=False)
        [trial] = await eventually(lambda: w.api.trials(experiment))
        await _checkpoint(w, trial, "c1", step=1)
        await w.api.kill(experiment)
        await w.api.ended(experiment, "CANCELED")
        await w.api.delete(experiment)
        [gc] = await w.launcher.running()
        await w.api.remove_files(experiment, uuids=["c1"], globs=["x"])
        await w.launcher.exit(gc)
        await eventually(lambda: _is_gone(w, experiment))
        assert len(w.launcher.specs) == 1


async def test_checkpoints_that_others_will_start_from_stay(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create()
        [allocation] = await w.launcher.running()
        [trial] = await w.api.trials(experiment)
        for step in (1, 2, 3):
            await _checkpoint(w, trial, f"c{step}", step=step)
        waiting = {"name": "single", "metric": "loss", "source_checkpoint_uuid": "c1"}
        await w.api.create(activate=False, searcher=waiting)
        await w.launcher.exit(allocation)
        gc = (await w.launcher.running(2))[1]
        assert _files(_spec(w, gc))["checkpoints_to_delete"] == ["c2"]


async def test_later_trials_start_from_the_checkpoint_that_was_chosen_once(world: World) -> None:
    source = await world.api.create(activate=False)
    [trial] = await world.api.trials(source)
    await _checkpoint(world, trial, "newer", step=9)
    searcher = {"name": "single", "metric": "loss", "source_trial_id": trial["id"]}
    chosen = await world.api.create(activate=False, searcher={**searcher, "source_checkpoint_uuid": "chosen"})
    unresolved = await world.api.create(activate=False, searcher=searcher)
    for experiment in (chosen, unresolved):
        await world.api.forget_search(experiment)
    async with world.scheduling() as w:
        [row] = await eventually(lambda: w.api.trials(chosen))
        assert row["warm_start_checkpoint_uuid"] == "chosen"
        [row] = await eventually(lambda: w.api.trials(unresolved))
        assert row["warm_start_checkpoint_uuid"] == "newer"


async def _storage(w: World, config: dict[str, Any]) -> int:
    async with w.db.transaction() as connection:
        row = insert(storage_backends).values(config=config, config_hash=b"h").returning(storage_backends.c.id)
        return int((await connection.execute(row)).scalar_one())


async def _specs(w: World, count: int) -> list[TaskSpec]:
    return [_spec(w, allocation) for allocation in await w.launcher.running(count)]


def _spec(w: World, allocation: str) -> TaskSpec:
    spec = w.launcher.specs[allocation].spec
    assert spec is not None
    return spec


def _files(spec: TaskSpec) -> dict[str, Any]:
    prefix, suffix = "checkpoint_gc/", ".json"
    return {
        file.path.removeprefix(prefix).removesuffix(suffix): msgspec.json.decode(file.content) for file in spec.files
    }


async def _requests(w: World) -> int:
    [count] = await w.api.sql("SELECT count(*) FROM checkpoint_gc_requests")
    return int(count)


async def _nothing_asked(w: World) -> bool:
    return await _requests(w) == 0


async def _all_ended(w: World) -> bool:
    return await w.api.sql("SELECT count(*) FROM tasks WHERE end_time IS NULL AND task_type <> 'TRIAL'") == [0]


async def _is_gone(w: World, experiment: int) -> bool:
    return await w.api.experiment(experiment) is None


async def _checkpoint(w: World, trial: Mapping[str, Any], uuid: str, *, step: int) -> None:
    of_trial = {"trial_id": trial["id"], "experiment_id": trial["experiment_id"]}
    async with w.db.transaction() as connection:
        await insert_checkpoint(connection, uuid=uuid, steps_completed=step, **of_trial)
