"""What users wrote of a pod goes with every order of the experiment, and is said once where it breaks a level."""

from __future__ import annotations

from typing import Any

from libs.events.orders import TaskSpec, UsersPod
from tests.builders import insert_checkpoint
from tests.harness import eventually
from tests.integration.scheduler.experiments.test_reasons import Log
from tests.integration.scheduler.world import World, background

USERS = UsersPod(
    pod={"spec": {"hostPID": True}},
    asks=("environment.pod_spec.spec.hostPID shares a namespace of the node; security.pod_fields can allow it",),
)
BOTH: dict[str, Any] = {"spec": {"hostPID": True, "tolerations": [{"operator": "Exists"}]}}


def spec(w: World, allocation: str) -> TaskSpec:
    found = w.launcher.specs[allocation].spec
    assert found is not None
    return found


async def test_every_order_has_it_and_the_first_start_says_it(world: World) -> None:
    log = Log()
    async with world.scheduling() as w, background(log.follow(w)):
        experiment = await w.api.create(users_pod=USERS, environment={"pod_spec": BOTH}, max_restarts=1)
        [first] = await w.launcher.running()
        await w.launcher.exit(first, code=1)
        second = (await w.launcher.running(2))[1]
        for allocation in (first, second):
            assert (spec(w, allocation).users_pod, spec(w, allocation).environment.pod_spec) == (USERS, BOTH)
        task = spec(w, first).task
        await log.has(task, f"Scheduling Trial 1 (Experiment {experiment}) (id: {second})")
        said = [line for of, line in log.lines if of == task and USERS.asks[0] in line]
        assert len(said) == 1
        assert "security.pod_spec: baseline would refuse this task" in said[0]


async def test_the_task_that_deletes_its_files_has_it_too(world: World) -> None:
    async with world.scheduling() as w:
        experiment = await w.api.create(users_pod=USERS)
        [allocation] = await w.launcher.running()
        [trial] = await w.api.trials(experiment)
        async with w.db.transaction() as connection:
            await insert_checkpoint(
                connection, uuid="c", steps_completed=1, trial_id=trial["id"], experiment_id=experiment
            )
        await w.launcher.exit(allocation)
        await w.api.ended(experiment, "COMPLETED")
        await w.api.delete(experiment)
        gc = (await w.launcher.running(2))[1]
        assert (spec(w, gc).task_type, spec(w, gc).users_pod) == ("CHECKPOINT_GC", USERS)


async def test_an_experiment_of_a_release_before_goes_on_without(world: World) -> None:
    async with world.scheduling() as w:
        await w.api.create(activate=False)
        await w.api.sql("UPDATE experiments SET users_pod = NULL")
        await w.api.activate(1)
        await eventually(lambda: w.launcher.specs)
        [allocation] = w.launcher.specs
        assert spec(w, allocation).users_pod is None
