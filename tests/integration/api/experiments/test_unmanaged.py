"""Experiments that run elsewhere and only report, as the SDK does it and as it may go wrong."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from libs.states.trial import TrialState
from services.api.wire.base import timestamp
from services.scheduler.experiments.lost_trials import SILENCE, LostTrials
from tests.harness import FakeClock
from tests.integration.api.experiments.conftest import CONFIG, Api
from tests.scenarios.unmanaged import ELSEWHERE, REFUSALS, Refusal

pytestmark = pytest.mark.asyncio(loop_scope="module")


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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ids(api: Api) -> dict[str, int]:
    """What the rows of REFUSALS name."""
    managed = await api.create(CONFIG)
    [ours, *_] = await api.rows.trials_of(managed)
    going = await api.create(ELSEWHERE, unmanaged=True)
    gone = (await _trial(api, going))["id"]
    await api.rows.set_experiment(going, state="DELETING")
    elsewhere = await api.create(ELSEWHERE, unmanaged=True)
    trial = (await _trial(api, elsewhere))["id"]
    return {"managed": managed, "ours": ours.id, "going": going, "gone": gone, "elsewhere": elsewhere, "trial": trial}


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: f"{case.method} {case.path}: {case.message}"[:90])
async def test_what_cannot_be_is_refused_in_words(api: Api, ids: dict[str, int], case: Refusal) -> None:
    path, body = case.path.format(**ids), with_ids(case.body, ids)
    assert case.message in await api.refused(case.status, case.method, path, json=body)


def with_ids(value: Any, ids: dict[str, int]) -> Any:
    """The value with numbers in the place of their names in braces."""
    if isinstance(value, dict):
        return {key: with_ids(item, ids) for key, item in value.items()}
    return ids[value[1:-1]] if isinstance(value, str) and value[1:-1] in ids else value


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
    given_up = (await api.ok("GET", f"/api/v1/experiments/{one}"))["experiment"]
    heard = [row.last_activity for row in await api.rows.trials_of(one)]
    assert given_up["endTime"] == timestamp(max(heard)), "it ended when it was last heard of, not when that was noticed"
    await _say(api, alive, "ERROR")
    assert await _state(api, other) == "STATE_COMPLETED"
    # One that was taken for lost and comes back is heard again.
    await _say(api, lost[0], "RUNNING")
    assert await _state(api, one) == "STATE_RUNNING"
