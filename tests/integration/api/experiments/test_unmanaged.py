"""Experiments that run elsewhere and only report, as the SDK does it and as it may go wrong."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from libs.states.trial import TrialState
from services.scheduler.experiments.lost_trials import SILENCE, LostTrials
from tests.harness import FakeClock
from tests.integration.api.experiments.conftest import CONFIG, Api

pytestmark = pytest.mark.asyncio(loop_scope="module")

ELSEWHERE = "{name: elsewhere, searcher: {name: single, metric: loss}, description: null}"


async def _put(api: Api, name: str, config: str = ELSEWHERE, **fields: Any) -> Any:
    body = {"config": config, "unmanaged": True, **fields}
    return await api.ok("PUT", f"/api/v1/experiments/by-external-id/{name}", json=body)


async def _trial(api: Api, experiment: int, name: str | None = None, **hparams: Any) -> Any:
    wanted = {"experimentId": experiment, "hparams": hparams, "unmanaged": True}
    if name is None:
        return (await api.ok("POST", "/api/v1/trials", json=wanted))["trial"]
    body = {"createTrialRequest": wanted, "externalTrialId": name}
    return (await api.ok("PUT", "/api/v1/trials", json=body))["trial"]


async def _say(api: Api, trial: int, state: str | None = None) -> Any:
    body = {"trialId": trial} if state is None else {"trialId": trial, "state": f"STATE_{state}"}
    return (await api.ok("PATCH", f"/api/v1/trials/{trial}", json=body))["trial"]


async def _start(api: Api, trial: int, *, resume: bool = True) -> Any:
    return await api.ok("POST", f"/api/v1/trials/{trial}/start", json={"trialId": trial, "resume": resume})


async def _state(api: Api, experiment: int) -> str:
    return str((await api.ok("GET", f"/api/v1/experiments/{experiment}"))["experiment"]["state"])


async def test_one_that_runs_elsewhere_needs_neither_code_nor_pool(api: Api) -> None:
    experiment = await api.create(ELSEWHERE + "\n", unmanaged=True)
    shown = (await api.ok("GET", f"/api/v1/experiments/{experiment}"))["experiment"]
    assert (shown["state"], shown["unmanaged"], shown["numTrials"]) == ("STATE_PAUSED", True, 0)
    assert shown["config"]["entrypoint"] is None
    listed = await api.ok("GET", "/api/v1/experiments?limit=1&orderBy=ORDER_BY_DESC")
    assert [one["id"] for one in listed["experiments"]] == [experiment]
    jobs = await api.ok("GET", "/api/v1/job-queues-v2?resourcePool=default")
    assert shown["jobId"] not in [job["limited" if "limited" in job else "full"]["jobId"] for job in jobs["jobs"]]


async def test_a_name_is_one_experiment_whoever_comes_first(api: Api) -> None:
    name = f"search-{uuid4()}"
    made = await asyncio.gather(*(_put(api, name, ELSEWHERE.replace("elsewhere", f"n{n}")) for n in range(6)))
    [experiment] = {one["experiment"]["id"] for one in made}
    changed = await _put(api, name, ELSEWHERE.replace("elsewhere", "renamed"))
    assert (changed["experiment"]["id"], changed["experiment"]["name"]) == (experiment, "renamed")
    assert changed["experiment"]["externalExperimentId"] == name
    made_trials = await asyncio.gather(*(_trial(api, experiment, "first", lr=n) for n in range(6)))
    [trial] = {one["id"] for one in made_trials}
    assert made_trials[0]["taskId"] == f"{experiment}.first"
    assert (await _trial(api, experiment, "first", lr=0.5))["hparams"] == {"lr": 0.5}
    found = (await api.ok("GET", f"/api/v1/trials/by-external-id/{name}/first"))["trial"]
    assert (found["id"], found["hparams"]) == (trial, {"lr": 0.5})
    other = await _trial(api, experiment, lr=1)
    assert other["id"] != trial
    locals_ = [row.local_id for row in await api.rows.trials_of(experiment)]
    assert len(set(locals_)) == 2
    assert min(locals_) > 0


async def test_a_trial_starts_reports_and_goes_on_from_its_checkpoint(api: Api) -> None:
    experiment = await api.create(ELSEWHERE, unmanaged=True)
    trial = await _trial(api, experiment, lr=1)
    assert (trial["state"], trial["endTime"]) == ("STATE_PAUSED", None)
    first = await _start(api, trial["id"], resume=False)
    assert first == {"trialRunId": 1, "stepsCompleted": 0}
    message = await api.refused(400, "POST", f"/api/v1/trials/{trial['id']}/start", json={"resume": False})
    assert message == "trial has already been started"
    assert await _state(api, experiment) == "STATE_RUNNING"
    checkpoint = await api.rows.checkpoint(experiment, trial["id"], 7)
    assert (await _say(api, trial["id"], "ERROR"))["endTime"] is not None
    assert await _state(api, experiment) == "STATE_ERROR"

    second = await _start(api, trial["id"])
    assert second == {"trialRunId": 2, "latestCheckpoint": checkpoint, "stepsCompleted": 7}
    assert await _state(api, experiment) == "STATE_RUNNING"
    ended = await _say(api, trial["id"], "COMPLETED")
    again = await _say(api, trial["id"], "COMPLETED")
    assert again["endTime"] == ended["endTime"]
    shown = (await api.ok("GET", f"/api/v1/experiments/{experiment}"))["experiment"]
    assert (shown["state"], shown["progress"]) == ("STATE_COMPLETED", 1)
    assert shown["endTime"] is not None
    for verb, status in (("cancel", 200), ("kill", 200), ("activate", 404), ("pause", 404), ("archive", 200)):
        assert (await api.client.post(f"/api/v1/experiments/{experiment}/{verb}")).status_code == status


class Refusal(NamedTuple):
    method: str
    path: str
    body: dict[str, Any]
    message: str
    status: int = 400


async def test_what_cannot_be_is_refused_in_words(api: Api) -> None:
    managed = await api.create(CONFIG)
    [ours, *_] = await api.rows.trials_of(managed)
    going = await api.create(ELSEWHERE, unmanaged=True)
    gone = (await _trial(api, going))["id"]
    await api.rows.set_experiment(going, state="DELETING")
    elsewhere = await api.create(ELSEWHERE, unmanaged=True)
    trial = (await _trial(api, elsewhere))["id"]
    wanted = {"experimentId": elsewhere, "unmanaged": True}
    only, by_name = "only unmanaged trials are supported", "/api/v1/experiments/by-external-id/x"
    refusals = [
        Refusal("PUT", by_name, {"config": ELSEWHERE}, "only unmanaged experiments are supported"),
        Refusal("PUT", by_name, {"config": ELSEWHERE, "unmanaged": True, "parentId": managed}, "parentId"),
        Refusal("PUT", by_name, {"config": "a: [", "unmanaged": True}, "invalid YAML"),
        Refusal("POST", "/api/v1/trials", {"experimentId": elsewhere}, only),
        Refusal(
            "POST",
            "/api/v1/trials",
            {"experimentId": managed, "unmanaged": True},
            "trials can only be created on unmanaged experiments",
        ),
        Refusal("POST", "/api/v1/trials", {"experimentId": 999_999, "unmanaged": True}, "not found", 404),
        Refusal("POST", "/api/v1/trials", {"experimentId": going, "unmanaged": True}, "is being deleted"),
        Refusal("PUT", "/api/v1/trials", {}, "externalTrialId"),
        Refusal("PUT", "/api/v1/trials", {"createTrialRequest": wanted, "externalTrialId": "x" * 513}, "at most 512"),
        Refusal("POST", f"/api/v1/trials/{ours.id}/start", {"resume": True}, only),
        Refusal("PATCH", f"/api/v1/trials/{ours.id}", {}, only),
        Refusal("PATCH", f"/api/v1/trials/{ours.id}", {"state": "STATE_RUNNING"}, only),
        Refusal(
            "PATCH", f"/api/v1/trials/{trial}", {"state": "STATE_QUEUED"}, "state: expected one of STATE_COMPLETED"
        ),
        Refusal("PATCH", "/api/v1/trials/999999", {}, "trial '999999' not found", 404),
        Refusal("POST", "/api/v1/trials/999999/start", {}, "trial '999999' not found", 404),
        Refusal("POST", f"/api/v1/trials/{gone}/start", {"resume": True}, "is being deleted"),
        Refusal("GET", "/api/v1/trials/by-external-id/x/y", {}, "trial 'x/y' not found", 404),
    ]
    for case in refusals:
        assert case.message in await api.refused(case.status, case.method, case.path, json=case.body), case


async def test_trials_nobody_hears_of_are_given_up(api: Api) -> None:
    one, other = [await api.create(ELSEWHERE, unmanaged=True) for _ in range(2)]
    lost = [(await _trial(api, one))["id"] for _ in range(2)]
    done, silent, alive = [(await _trial(api, other))["id"] for _ in range(3)]
    for trial in (*lost, done, silent, alive):
        await _start(api, trial)
    await _say(api, done, "COMPLETED")
    clock, hears = FakeClock(api.app.clock.now()), True

    async def heard() -> bool:
        return hears

    watch = LostTrials(db=api.app.db, clock=clock, reports_are_heard=heard)
    await watch.check()
    clock.advance(SILENCE.total_seconds() + 30)
    await api.rows.set_trial(alive, last_activity=clock.now() - timedelta(seconds=60))
    hears = False
    await watch.check()
    hears = True
    await watch.check()
    states = {row.id: row.state for row in await api.rows.trials_of(one)}
    assert set(states.values()) == {TrialState.RUNNING}, "after an outage they have time to report"

    clock.advance(SILENCE.total_seconds())
    await api.rows.set_trial(alive, last_activity=clock.now() - timedelta(seconds=60))
    await watch.check()
    rows = [*await api.rows.trials_of(one), *await api.rows.trials_of(other)]
    assert {row.id: row.state for row in rows} == {
        **dict.fromkeys([*lost, silent], "ERROR"),
        done: "COMPLETED",
        alive: "RUNNING",
    }
    assert all(row.end_time == row.last_activity for row in rows if row.state == "ERROR")
    assert (await _state(api, one), await _state(api, other)) == ("STATE_ERROR", "STATE_RUNNING")
    await _say(api, alive, "ERROR")
    assert await _state(api, other) == "STATE_COMPLETED"
    # One that was taken for lost and comes back is heard again.
    await _say(api, lost[0], "RUNNING")
    assert await _state(api, one) == "STATE_RUNNING"
