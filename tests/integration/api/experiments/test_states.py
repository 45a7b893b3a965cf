"""What users ask of experiments and trials: the state that follows, the event, and the words of a refusal."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from libs.events import subjects
from tests.integration.api.experiments.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")

LIVE = ("ACTIVE", "PAUSED", "STOPPING_COMPLETED", "STOPPING_CANCELED", "STOPPING_KILLED", "STOPPING_ERROR")
ENDED = ("COMPLETED", "CANCELED", "ERROR")

MOVES = [
    # action, state before, state after; a text instead of a state is the refusal
    ("activate", "PAUSED", "ACTIVE"),
    ("activate", "ACTIVE", "ACTIVE"),
    ("activate", "STOPPING_CANCELED", "experiment in incompatible state STOPPING_CANCELED"),
    ("pause", "ACTIVE", "PAUSED"),
    ("pause", "PAUSED", "PAUSED"),
    ("pause", "COMPLETED", "experiment in terminal state"),
    ("pause", "STOPPING_KILLED", "experiment in incompatible state STOPPING_KILLED"),
    ("cancel", "ACTIVE", "STOPPING_CANCELED"),
    ("cancel", "PAUSED", "STOPPING_CANCELED"),
    ("cancel", "COMPLETED", "COMPLETED"),
    ("cancel", "DELETING", "DELETING"),
    ("kill", "ACTIVE", "STOPPING_KILLED"),
    ("kill", "STOPPING_CANCELED", "STOPPING_KILLED"),
    ("kill", "STOPPING_COMPLETED", "STOPPING_KILLED"),
    ("kill", "STOPPING_KILLED", "STOPPING_KILLED"),
    ("kill", "ERROR", "ERROR"),
    ("archive", "PAUSED", "Experiment is not in terminal state."),
    ("unarchive", "COMPLETED", "Experiment is not archived."),
]


@pytest.mark.parametrize(("action", "before", "after"), MOVES)
async def test_course_of_an_experiment(api: Api, action: str, before: str, after: str) -> None:
    experiment_id = await api.create()
    await api.rows.set_experiment(experiment_id, state=before)
    path = f"/api/v1/experiments/{experiment_id}/{action}"
    said = len(await api.rows.announced())
    if after.isupper():
        assert await api.ok("POST", path) == {}
        if before in LIVE:
            assert (await api.rows.announced())[said:].count(subjects.event("experiment", experiment_id, "state")) == 1
    else:
        assert await api.refused(400, "POST", path) == after
    assert (await api.rows.experiment(experiment_id)).state == (after if after.isupper() else before)


async def test_what_has_ended_or_never_was_cannot_be_activated(api: Api) -> None:
    for state in ENDED:
        experiment_id = await api.create()
        await api.rows.set_experiment(experiment_id, state=state)
        message = await api.refused(404, "POST", f"/api/v1/experiments/{experiment_id}/activate")
        assert message == f"experiment '{experiment_id}' not found"
    for action in ("activate", "pause", "cancel", "kill", "archive", "unarchive"):
        message = await api.refused(404, "POST", f"/api/v1/experiments/999999/{action}")
        assert message == "experiment '999999' not found"
    await api.refused(400, "POST", "/api/v1/experiments/nonsense/kill")


async def test_archive_and_back(api: Api) -> None:
    experiment_id = await api.create()
    await api.rows.set_experiment(experiment_id, state="COMPLETED")
    path = f"/api/v1/experiments/{experiment_id}"
    await api.ok("POST", f"{path}/archive")
    assert await api.refused(400, "POST", f"{path}/archive") == "Experiment is already archived."
    await api.refused(404, "POST", f"{path}/pause")
    assert (await api.ok("GET", path))["experiment"]["archived"] is True
    await api.ok("POST", f"{path}/unarchive")
    assert (await api.ok("GET", path))["experiment"]["archived"] is False


async def test_delete_is_for_owners_of_what_has_ended(api: Api) -> None:
    experiment_id = await api.create()
    path = f"/api/v1/experiments/{experiment_id}"
    assert await api.refused(400, "DELETE", path) == "cannot delete experiment in STATE_PAUSED state"
    for state in ("COMPLETED", "DELETE_FAILED"):
        await api.rows.set_experiment(experiment_id, state=state)
        await api.ok("DELETE", path)
        assert (await api.ok("GET", path))["experiment"]["state"] == "STATE_DELETING"
    assert await api.refused(400, "DELETE", path) == "cannot delete experiment in STATE_DELETING state"

    theirs = (await api.admin.post("/api/v1/experiments", json={"config": MINIMAL})).json()["experiment"]["id"]
    await api.rows.set_experiment(theirs, state="COMPLETED")
    for method, below in (("DELETE", ""), ("DELETE", "/tensorboard-files")):
        assert "owner" in await api.refused(403, method, f"/api/v1/experiments/{theirs}{below}")
    assert (await api.admin.delete(f"/api/v1/experiments/{theirs}")).status_code == 200


async def test_administrator_deletes_what_keeps_its_files(api: Api) -> None:
    experiment_id = await api.create()
    await api.rows.set_experiment(experiment_id, state="DELETE_FAILED", error="checkpoint GC failed")
    path = f"/api/v1/experiments/{experiment_id}?force=true"
    assert "admin" in await api.refused(403, "DELETE", path)
    assert (await api.admin.delete(path)).status_code == 200
    row = await api.rows.experiment(experiment_id)
    assert (row.state, row.deletion_tasks) == ("DELETING", [])


async def test_reason_of_a_failure_is_shown_with_the_experiment(api: Api) -> None:
    experiment_id = await api.create()
    path = f"/api/v1/experiments/{experiment_id}"
    before = (await api.ok("GET", path))["experiment"]["description"]
    await api.rows.set_experiment(experiment_id, error="the search failed: no")
    described = (await api.ok("GET", path))["experiment"]["description"]
    assert described == f"{before} [the search failed: no]".strip()
    # The client sends the whole object back when it only adds a label.
    edited = await api.ok("PATCH", path, json={"id": experiment_id, "description": described, "labels": ["x"]})
    assert (edited["experiment"]["labels"], edited["experiment"]["description"]) == (["x"], described)
    assert (await api.rows.experiment(experiment_id)).config["description"] == before


async def test_displayed_state_is_the_best_of_the_allocations(api: Api) -> None:
    experiment_id = await api.create_empty(activate=True)

    async def shown() -> tuple[str, str]:
        one = (await api.ok("GET", f"/api/v1/experiments/{experiment_id}"))["experiment"]["state"]
        page = await api.ok("GET", "/api/v1/experiments", params={"experimentIdFilter.incl": experiment_id})
        assert page["experiments"][0]["state"] == one
        trials = (await api.ok("GET", f"/api/v1/experiments/{experiment_id}/trials"))["trials"]
        return one, trials[0]["state"] if trials else ""

    assert await shown() == ("STATE_QUEUED", "")
    first = await api.rows.trial(experiment_id)
    assert await shown() == ("STATE_QUEUED", "STATE_QUEUED")
    await api.rows.allocation(first, "PULLING")
    assert await shown() == ("STATE_PULLING", "STATE_PULLING")
    second = await api.rows.trial(experiment_id)
    await api.rows.allocation(second, "RUNNING")
    assert await shown() == ("STATE_RUNNING", "STATE_PULLING")
    await api.rows.end_allocations(second)
    await api.rows.end_allocations(first)
    await api.rows.next_task(first)
    await api.rows.allocation(first, "STARTING")
    assert await shown() == ("STATE_STARTING", "STATE_STARTING")
    await api.rows.set_experiment(experiment_id, state="STOPPING_CANCELED")
    assert (await shown())[0] == "STATE_STOPPING_CANCELED"


async def test_place_in_the_queue(api: Api) -> None:
    experiment_id = await api.create(activate=True)
    path = f"/api/v1/experiments/{experiment_id}"
    assert (await api.ok("GET", path))["jobSummary"] is None
    submitted_at = (await api.rows.job((await api.rows.experiment(experiment_id)).job_id)).submitted_at
    trial_id = await api.rows.trial(experiment_id)
    await api.rows.allocation(trial_id, "PENDING", pool="other")
    assert (await api.ok("GET", path))["jobSummary"] == {"state": "STATE_QUEUED", "jobsAhead": 0}
    await api.rows.other_job("other", priority=99, submitted_at=submitted_at.replace(year=2000))
    assert (await api.ok("GET", path))["jobSummary"]["jobsAhead"] == 0
    await api.rows.other_job("other", priority=None, submitted_at=submitted_at.replace(year=2000))
    await api.rows.other_job("other", priority=1, submitted_at=submitted_at.replace(year=2040))
    await api.rows.other_job("default", priority=1, submitted_at=submitted_at)
    assert (await api.ok("GET", path))["jobSummary"]["jobsAhead"] == 2


MINIMAL = "{entrypoint: run, searcher: {name: single, metric: loss}}"

KILLS = [
    ("ACTIVE", "STOPPING_KILLED"),
    ("PAUSED", "STOPPING_KILLED"),
    ("STOPPING_CANCELED", "STOPPING_KILLED"),
    ("STOPPING_ERROR", "STOPPING_ERROR"),
    ("COMPLETED", "COMPLETED"),
]


@pytest.mark.parametrize(("before", "after"), KILLS)
async def test_kill_of_one_trial(api: Api, before: str, after: str) -> None:
    experiment_id = await api.create_empty(activate=True)
    trial_id = await api.rows.trial(experiment_id, state=before)
    await api.ok("POST", f"/api/v1/trials/{trial_id}/kill")
    (trial,) = await api.rows.trials_of(experiment_id)
    assert trial.state == after
    if before != "COMPLETED":
        assert (await api.rows.announced())[-1] == subjects.event("trial", trial_id, "state")


async def test_kill_of_a_trial_whose_experiment_has_ended(api: Api) -> None:
    experiment_id = await api.create()
    trial_id = await api.rows.trial(experiment_id)
    await api.rows.set_experiment(experiment_id, state="COMPLETED")
    message = await api.refused(404, "POST", f"/api/v1/trials/{trial_id}/kill")
    assert message == f"experiment '{experiment_id}' not found"
    assert await api.refused(404, "POST", "/api/v1/trials/999999/kill") == "trial '999999' not found"


async def test_log_retention_is_for_what_has_ended(api: Api) -> None:
    experiment_id = await api.create()
    trial_id = await api.rows.trial(experiment_id, state="COMPLETED")
    path = f"/api/v1/experiments/{experiment_id}/retain_logs"
    message = await api.refused(400, "PUT", path, json={"numDays": 7})
    assert message == "experiment in non terminal state 'PAUSED', try again later"
    await api.rows.set_experiment(experiment_id, state="COMPLETED")
    await api.ok("PUT", path, json={"numDays": 7})
    assert (await api.ok("GET", f"/api/v1/trials/{trial_id}"))["trial"]["logRetentionDays"] == 7
    await api.ok("PUT", f"/api/v1/trials/{trial_id}/retain_logs", json={"numDays": -1})
    assert (await api.ok("GET", f"/api/v1/trials/{trial_id}"))["trial"]["logRetentionDays"] == -1
    running = await api.rows.trial(experiment_id, state="ACTIVE")  # a single trial may still run
    await api.ok("PUT", f"/api/v1/trials/{running}/retain_logs", json={"numDays": 3})
    assert (await api.ok("GET", f"/api/v1/trials/{running}"))["trial"]["logRetentionDays"] == 3
    for days in (-2, 32768):
        await api.refused(400, "PUT", path, json={"numDays": days})


async def test_many_at_once(api: Api) -> None:
    mine = await api.rows.project("Bulk")
    paused, active, done = [await api.create(projectId=mine) for _ in range(3)]
    await api.rows.set_experiment(active, state="ACTIVE")
    await api.rows.set_experiment(done, state="COMPLETED")

    async def bulk(verb: str, method: str = "POST", project: int = mine, **body: Any) -> dict[int, str]:
        path = f"/api/v1/projects/{project}/experiments/{verb}"
        results = (await api.ok(method, path, json={"projectId": project, **body}))["results"]
        return {result["id"]: result["error"] for result in results}

    assert await bulk("pause", experimentIds=[done, active, 999_999]) == {
        done: "experiment in terminal state",
        active: "",
        999_999: "experiment '999999' not found",
    }
    only_mine = {"name": "DIGITS", "labels": ["one"], "excludedExperimentIds": [paused], "projectId": mine}
    assert await bulk("activate", experimentIds=[done], filters=only_mine, project=-1) == {active: ""}
    assert (await api.rows.experiment(paused)).state == "PAUSED"
    assert await bulk("archive", filters={"states": ["STATE_COMPLETED"]}) == {done: ""}
    assert await bulk("unarchive", filters={}) == {done: ""}
    assert await bulk("archive", experimentIds=[done], project=77) == {done: f"experiment '{done}' not found"}
    days = {"experimentIds": [done, paused], "numDays": 3}
    assert await bulk("retain_logs", "PUT", **days) == {
        done: "",
        paused: "experiment in non terminal state 'PAUSED', try again later",
    }
    assert await bulk("kill", filters={"userIds": [2], "name": "digits"}) == {paused: "", active: ""}
    assert await bulk("delete", "DELETE", experimentIds=[done, paused]) == {
        done: "",
        paused: "cannot delete experiment in STATE_STOPPING_KILLED state",
    }

    target = await api.rows.project("Bulk target")
    assert await bulk("move", experimentIds=[paused], destinationProjectId=target) == {paused: ""}
    assert (await api.rows.experiment(paused)).project_id == target
    await api.rows.set_project(target, archived=True)
    body = {"experimentIds": [active], "destinationProjectId": target}
    message = await api.refused(400, "POST", f"/api/v1/projects/{mine}/experiments/move", json=body)
    assert message == f"project ({target}) is archived and cannot add new experiments"


async def test_move_renumbers_trials(api: Api) -> None:
    experiment_id = await api.create_empty()
    first = await api.rows.trial(experiment_id, local_id=3)
    second = await api.rows.trial(experiment_id, local_id=4)
    target = await api.rows.project("Move target")
    await api.rows.set_project(target, max_local_id=10)
    path = f"/api/v1/experiments/{experiment_id}/move"
    assert await api.refused(404, "POST", path, json={"destinationProjectId": 999_999}) == "project '999999' not found"
    await api.refused(400, "POST", path)

    await api.ok("POST", path, json={"destinationProjectId": target})
    moved = {trial.id: (trial.project_id, trial.local_id) for trial in await api.rows.trials_of(experiment_id)}
    assert moved == {first: (target, 11), second: (target, 12)}
    experiment = (await api.ok("GET", f"/api/v1/experiments/{experiment_id}"))["experiment"]
    assert (experiment["projectId"], experiment["workspaceName"]) == (target, "Move target")
    job = await api.rows.job(experiment["jobId"])
    assert job.workspace_id == experiment["workspaceId"]

    await api.rows.set_project(target, archived=True)
    message = await api.refused(400, "POST", path, json={"destinationProjectId": 1})
    assert message == f"project ({target}) is archived and cannot have experiments moved from it"
    await api.rows.set_experiment(experiment_id, archived=True, state="COMPLETED")
    message = await api.refused(400, "POST", path, json={"destinationProjectId": 1})
    assert message == f"experiment ({experiment_id}) is archived and cannot be moved"


async def test_move_takes_along_what_has_a_job_of_its_own(api: Api) -> None:
    experiment_id, other = await api.create(), await api.create()
    mine, theirs = await api.rows.gc_task(experiment_id), await api.rows.gc_task(other)
    target = await api.rows.project("Place of files")
    await api.ok("POST", f"/api/v1/experiments/{experiment_id}/move", json={"destinationProjectId": target})
    workspace = (await api.ok("GET", f"/api/v1/experiments/{experiment_id}"))["experiment"]["workspaceId"]
    assert workspace != 1
    for job, place in ((mine, workspace), (theirs, 1)):
        assert ((await api.rows.job(job)).workspace_id, (await api.rows.task_of(job)).workspace_id) == (place, place)


async def test_experiments_moved_at_the_same_time_never_share_a_local_id(api: Api) -> None:
    target = await api.rows.project("Busy target")
    moving = [await api.create_empty() for _ in range(5)]
    for experiment_id in moving:
        for _ in range(3):
            await api.rows.trial(experiment_id)
    body = {"destinationProjectId": target}
    await asyncio.gather(*(api.ok("POST", f"/api/v1/experiments/{each}/move", json=body) for each in moving))
    local_ids = [trial.local_id for each in moving for trial in await api.rows.trials_of(each)]
    assert sorted(local_ids) == list(range(1, 16))
