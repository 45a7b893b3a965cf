"""What clients read as soon as they have an answer, with no scheduler to bring it about."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from libs.searchers.searcher import Searcher
from tests.integration.api.experiments.conftest import CONFIG, Api

pytestmark = pytest.mark.asyncio(loop_scope="module")

SINGLE = "{entrypoint: run, searcher: {name: single, metric: loss}}"
SHOWN = {True: "STATE_QUEUED", False: "STATE_PAUSED"}


async def trials_of(api: Api, experiment_id: int) -> list[dict[str, Any]]:
    page = await api.ok("GET", f"/api/v1/experiments/{experiment_id}/trials", params={"limit": 1000})
    return list(page["trials"])


@pytest.mark.parametrize("activate", [True, False])
async def test_a_new_experiment_has_the_first_trials_of_its_search(api: Api, activate: bool) -> None:
    experiment_id = await api.create(CONFIG + "reproducibility: {experiment_seed: 11}", activate=activate)
    config = (await api.rows.experiment(experiment_id)).config
    wanted = Searcher.create(config["searcher"], config["hyperparameters"], 11).initial_trials()
    assert len(wanted) == 4
    trials = await trials_of(api, experiment_id)
    assert [trial["hparams"] for trial in trials] == [create.hparams for create in wanted]  # type: ignore[union-attr]
    assert [trial["taskId"] for trial in trials] == [
        f"{experiment_id}.{create.request_id}"  # type: ignore[union-attr]
        for create in wanted
    ]
    assert {trial["state"] for trial in trials} == {SHOWN[activate]}
    for trial in trials:
        assert (await api.ok("GET", f"/api/v1/trials/{trial['id']}"))["trial"] == trial
        assert (await api.ok("GET", f"/api/v1/tasks/{trial['taskId']}"))["task"]["taskType"] == "TASK_TYPE_TRIAL"
    shown = (await api.ok("GET", f"/api/v1/experiments/{experiment_id}"))["experiment"]
    assert (shown["numTrials"], shown["progress"]) == (4, 0)


async def test_a_search_may_begin_with_very_many_trials(api: Api) -> None:
    project = await api.rows.project("A large grid")
    axis = "{type: int, minval: 0, maxval: 34, count: 35}"
    searcher = "{name: grid, metric: loss, max_concurrent_trials: 0}"
    config = f"{{entrypoint: run, hyperparameters: {{a: {axis}, b: {axis}}}, searcher: {searcher}}}"
    trials = await api.rows.trials_of(await api.create(config, projectId=project))
    assert sorted((trial.hparams["a"], trial.hparams["b"]) for trial in trials) == [
        (a, b) for a in range(35) for b in range(35)
    ]
    assert [trial.local_id for trial in trials] == list(range(1, 35**2 + 1))


async def test_the_only_trial_of_an_experiment_is_its_best(api: Api) -> None:
    experiment_id = await api.create(SINGLE)
    [trial] = await trials_of(api, experiment_id)
    shown = (await api.ok("GET", f"/api/v1/experiments/{experiment_id}"))["experiment"]
    assert shown["bestTrialId"] == trial["id"]


async def test_a_fork_has_trials_that_start_where_it_says(api: Api) -> None:
    parent = await api.create(SINGLE)
    [trial] = await trials_of(api, parent)
    uuid = await api.rows.checkpoint(parent, trial["id"], 10)
    warm = f"{{entrypoint: run, searcher: {{name: single, metric: loss, source_trial_id: {trial['id']}}}}}"
    [forked] = await trials_of(api, await api.create(warm, parentId=parent))
    assert forked["warmStartCheckpointUuid"] == uuid


async def test_experiments_created_at_the_same_time_never_share_a_local_id(api: Api) -> None:
    project = await api.rows.project("Many at once")
    created = await asyncio.gather(*(api.create(projectId=project) for _ in range(8)))
    local_ids = [trial.local_id for one in created for trial in await api.rows.trials_of(one)]
    assert sorted(local_ids) == list(range(1, 4 * 8 + 1))
