"""What an experiment failed of stands where its owner looks: in the log of its first trial, and in its row."""

from __future__ import annotations

import msgspec

from libs.bus import Message
from libs.events import subjects
from libs.events.logs import LogBatch
from libs.events.orders import Order
from tests.builders import insert_metrics
from tests.harness import eventually
from tests.integration.scheduler.world import World, background

CANNOT_MOUNT = "cannot start: cannot mount /nowhere at /x: no such file or directory on this machine"


class Log:
    """Lines that services add to the logs of tasks."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    async def follow(self, world: World) -> None:
        await world.bus.consume(
            stream=subjects.LOGS_STREAM, durable="test", filter=subjects.ALL_LOGS, handler=self._take
        )

    async def _take(self, message: Message) -> None:
        batch = msgspec.msgpack.decode(message.data, type=LogBatch)
        self.lines += [(batch.task, line.log.decode().strip()) for line in batch.lines]

    async def has(self, task: str, *parts: str) -> None:
        def look() -> bool:
            return any(task == of and all(part in line for part in parts) for of, line in self.lines)

        await eventually(look, what=f"{parts} in {task}")


async def _error(w: World, experiment: int) -> str:
    row = await w.api.experiment(experiment)
    assert row is not None
    return row["error"] or ""


async def _task(w: World, experiment: int) -> str:
    [trial] = await w.api.trials(experiment)
    [task] = await w.api.sql("SELECT task_id FROM trial_tasks WHERE trial_id = :t", t=trial["id"])
    return str(task)


async def _report(w: World, experiment: int) -> None:
    """Its trial reports something, so that it has files."""
    [trial] = await w.api.trials(experiment)
    async with w.db.transaction() as connection:
        await insert_metrics(connection, trial_id=trial["id"], step=1, group="training", values={})


async def _run(w: World, *, reports: bool = True) -> int:
    """An experiment that has run; returns its id."""
    seen = len(w.launcher.specs)
    experiment = await w.api.create()
    allocation = (await w.launcher.running(seen + 1))[-1]
    if reports:
        await _report(w, experiment)
    await w.launcher.exit(allocation)
    await w.api.ended(experiment, "COMPLETED")
    return experiment


async def test_of_its_search(world: World) -> None:
    log = Log()
    async with world.scheduling() as w, background(log.follow(w)):
        experiment = await w.api.create()
        await w.launcher.running()
        await w.api.sql("UPDATE searcher_snapshots SET snapshot = '{}'")
        await w.api.pause(experiment)
        await w.api.ended(experiment, "ERROR")
        assert "the search failed: KeyError" in await _error(w, experiment)
        await log.has(await _task(w, experiment), "the search failed: KeyError")


async def test_of_a_container_that_can_never_be_made(world: World) -> None:
    """It counts as a restart, and does not go on for ever."""

    async def refuse(order: Order) -> None:
        await world.launcher.see(order.allocation, "TERMINATED", failure="LAUNCH_ERROR", message=CANNOT_MOUNT)

    world.launcher.on_run = refuse
    log = Log()
    async with world.scheduling() as w, background(log.follow(w)):
        experiment = await w.api.create(max_restarts=1)
        await w.api.ended(experiment, "ERROR")
        [trial] = await w.api.trials(experiment)
        assert (trial["state"], trial["restarts"]) == ("ERROR", 2)
        assert len(w.launcher.specs) == 2
        assert CANNOT_MOUNT in await _error(w, experiment)
        await log.has(await _task(w, experiment), "crashed: task failed without an associated exit code", CANNOT_MOUNT)


async def test_of_its_checkpoint_gc(world: World) -> None:
    log = Log()
    async with world.scheduling() as w, background(log.follow(w)):
        experiment = await _run(w)
        await w.api.remove_files(experiment, uuids=["a"], globs=["x"])
        gc = (await w.launcher.running(2))[1]
        await w.launcher.exit(gc, 1)
        said = ("checkpoint GC failed: allocation failed", f"det task logs {gc.rpartition('.')[0]}")
        await log.has(await _task(w, experiment), *said)
        for part in said:
            assert part in await _error(w, experiment)
        await w.api.remove_files(experiment, uuids=["a"], globs=["x"])
        await w.launcher.exit((await w.launcher.running(3))[2])

        async def is_forgotten() -> bool:
            return not await _error(w, experiment)

        await eventually(is_forgotten)


async def test_of_its_deletion_and_how_an_administrator_gets_rid_of_it(world: World) -> None:
    log = Log()
    async with world.scheduling() as w, background(log.follow(w)):
        experiment = await _run(w)
        await w.api.delete(experiment)
        gc = (await w.launcher.running(2))[1]
        await w.launcher.exit(gc, 1)
        await w.api.ended(experiment, "DELETE_FAILED")
        way_out = f"det dev curl '/api/v1/experiments/{experiment}?force=true' -X DELETE"
        assert way_out in await _error(w, experiment)
        await log.has(await _task(w, experiment), "the experiment was not deleted: checkpoint GC failed", way_out)

        await w.api.delete(experiment, force=True)
        await eventually(lambda: _is_gone(w, experiment))
        assert len(w.launcher.specs) == 2, "no other task was made for its files"


async def test_experiment_without_files_is_deleted_without_a_task(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await _run(w, reports=False)
        await w.api.delete(experiment)
        await eventually(lambda: _is_gone(w, experiment))
        assert len(w.launcher.specs) == 1


async def test_tensorboard_files_are_deleted_without_any_checkpoint(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await _run(w)
        await w.api.delete(experiment)
        gc = (await w.launcher.running(2))[1]
        spec = w.launcher.specs[gc].spec
        assert spec is not None
        assert "--delete-tensorboards" in spec.argv
        await w.launcher.exit(gc)
        await eventually(lambda: _is_gone(w, experiment))


async def _is_gone(w: World, experiment: int) -> bool:
    return await w.api.experiment(experiment) is None
