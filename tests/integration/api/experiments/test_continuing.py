"""POST /api/v1/experiments/continue: what goes on, and with which words the rest is refused."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from libs.db.tables.trials import trials
from libs.events import subjects
from tests.integration.api.experiments.conftest import CONFIG, Api
from tests.integration.api.experiments.rows import START
from tests.scenarios.continuing import REFUSALS, SINGLE, Refusal, stored_without

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONTINUE = "/api/v1/experiments/continue"
ENDED = {"state": "COMPLETED", "end_time": START, "progress": 1.0}


async def _ended(api: Api, submitted: str, trial_state: str = "COMPLETED", **values: Any) -> int:
    experiment = await api.create(submitted)
    for trial in await api.rows.trials_of(experiment):
        await api.rows.set_trial(trial.id, state=trial_state, end_time=START, restarts=2, run_id=3)
    await api.rows.set_experiment(experiment, **{**ENDED, **values})
    return experiment


@pytest.mark.parametrize("case", REFUSALS, ids=[case.name for case in REFUSALS])
async def test_what_cannot_go_on_says_why_and_stays_as_it_is(api: Api, case: Refusal) -> None:
    experiment = await _ended(api, case.config, **case.values)
    before = await api.rows.experiment(experiment), await api.rows.trials_of(experiment)
    said = await api.rows.announced()
    body = {"id": experiment, "overrideConfig": case.override}
    assert case.message in await api.refused(400, "POST", CONTINUE, json=body)
    assert (await api.rows.experiment(experiment), await api.rows.trials_of(experiment)) == before
    assert await api.rows.announced() == said


async def test_unknown_experiments_are_not_found(api: Api) -> None:
    assert await api.refused(404, "POST", CONTINUE, json={"id": 999_999}) == "experiment '999999' not found"
    assert await api.refused(404, "POST", CONTINUE, json={}) == "experiment '0' not found"


@pytest.mark.parametrize("state", ["COMPLETED", "CANCELED", "ERROR"])
async def test_a_single_trial_goes_on_in_a_task_of_its_own(api: Api, state: str) -> None:
    experiment = await _ended(api, SINGLE, state, state=state, error="why it failed")
    before, (trial,) = await api.rows.experiment(experiment), await api.rows.trials_of(experiment)
    submitted = (await api.rows.job(before.job_id)).submitted_at

    # Another space takes other draws of the search's random stream.
    override = "{max_restarts: 1, hyperparameters: {width: {type: categorical, vals: [5]}}, resources: {priority: 3}}"
    answer = await api.ok("POST", CONTINUE, json={"id": experiment, "overrideConfig": override})
    after, (same,) = await api.rows.experiment(experiment), await api.rows.trials_of(experiment)

    assert (answer["experiment"]["state"], answer["warnings"]) == ("STATE_QUEUED", [])
    assert answer["experiment"]["description"] == ""
    assert (after.state, after.progress, after.end_time, after.error) == ("ACTIVE", 0.0, None, None)
    assert (after.config["max_restarts"], after.config["name"]) == (1, "one")
    kept = ("start_time", "job_id", "original_config", "best_trial_id")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    assert (same.id, same.request_id, same.seed, same.start_time) == (
        trial.id,
        trial.request_id,
        trial.seed,
        trial.start_time,
    )
    assert (same.state, same.restarts, same.run_id, same.end_time) == ("ACTIVE", 0, 3, None)
    assert same.hparams == {"lr": 1, "width": 5}
    task = f"{experiment}.{trial.request_id}"
    shown = (await api.ok("GET", f"/api/v1/trials/{trial.id}"))["trial"]
    assert (shown["taskId"], shown["taskIds"]) == (task, [task, f"{task}-1"])
    job = await api.rows.job(after.job_id)
    assert job.submitted_at > submitted
    assert (job.pool, job.priority) == ("default", 3)
    assert subjects.event("experiment", experiment, "state") in (await api.rows.announced())[-4:]


async def test_a_search_goes_on_when_something_is_left_of_it(api: Api) -> None:
    experiment = await _ended(api, CONFIG)
    done, killed, *_ = await api.rows.trials_of(experiment)
    await api.rows.set_trial(killed.id, state="CANCELED")
    await api.ok("POST", CONTINUE, json={"id": experiment, "overrideConfig": "{}\n"})
    row = await api.rows.experiment(experiment)
    assert (row.state, row.progress, row.end_time) == ("ACTIVE", 0.0, None)
    assert {trial.restarts for trial in await api.rows.trials_of(experiment)} == {0}
    # What becomes of the trials is for the search to say, which the scheduler begins anew.
    states = {trial.id: trial.state for trial in await api.rows.trials_of(experiment)}
    assert (states[done.id], states[killed.id]) == ("COMPLETED", "CANCELED")


async def test_what_is_not_stored_may_come_with_the_override(api: Api) -> None:
    experiment = await _ended(api, SINGLE, config=stored_without("searcher"))
    override = "searcher: {name: single, metric: loss}"
    await api.ok("POST", CONTINUE, json={"id": experiment, "overrideConfig": override})
    after = (await api.rows.experiment(experiment)).config
    assert (after["searcher"]["metric"], after["name"], after["max_restarts"]) == ("loss", "one", 5)


async def test_labels_from_before_there_was_a_limit_stay(api: Api) -> None:
    overlong = "l" * 300
    experiment = await _ended(api, SINGLE)
    row = await api.rows.experiment(experiment)
    await api.rows.set_experiment(experiment, config={**row.config, "labels": [overlong, "short"]})
    await api.ok("POST", CONTINUE, json={"id": experiment, "overrideConfig": "labels: [more]"})
    assert set((await api.rows.experiment(experiment)).config["labels"]) == {overlong, "short", "more"}

    copy = SINGLE.replace("name: one", f"name: one, labels: [{overlong}, mine]")
    fork = await api.create(copy, parentId=experiment)
    assert set((await api.rows.experiment(fork)).config["labels"]) == {overlong, "mine"}
    refusal = "a label must not have more than 256 characters"
    assert refusal in await api.refused(400, "POST", "/api/v1/experiments", json={"config": copy})
    another = {"config": copy.replace(overlong, "m" * 300), "parentId": experiment}
    assert refusal in await api.refused(400, "POST", "/api/v1/experiments", json=another)


async def test_parents_that_are_gone_change_nothing(api: Api) -> None:
    fork = await _ended(api, SINGLE, parent_id=987_654_321)
    await api.ok("POST", CONTINUE, json={"id": fork})
    assert (await api.ok("GET", f"/api/v1/experiments/{fork}"))["experiment"]["forkedFrom"] == 987_654_321
    assert await api.create(SINGLE, parentId=fork) > fork
    assert "not found" in await api.refused(
        404, "POST", "/api/v1/experiments", json={"config": SINGLE, "parentId": 987_654_321}
    )


async def test_more_than_a_hundred_trials_begin_with_all_their_restarts(api: Api) -> None:
    experiment = await api.create_empty(CONFIG)
    await api.rows.many_trials(experiment, 150)
    await api.rows.set_experiment(experiment, **{**ENDED, "state": "CANCELED"})
    async with api.app.db.transaction() as connection:
        await connection.execute(
            update(trials).where(trials.c.experiment_id == experiment).values(state="ERROR", restarts=2)
        )
    await api.ok("POST", CONTINUE, json={"id": experiment})
    assert {trial.restarts for trial in await api.rows.trials_of(experiment)} == {0}
