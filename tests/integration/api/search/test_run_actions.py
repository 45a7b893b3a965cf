"""Actions on many runs: what becomes of each, and why some are left as they are."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select, update

from libs.db.tables.trials import deleted_trials
from libs.db.tables.workspaces import workspaces
from libs.events import subjects
from tests.integration.api.experiments.conftest import CONFIG, Api
from tests.scenarios.run_results import SITUATIONS, VERBS, Situation
from tests.scenarios.search.nodes import field, group

pytestmark = pytest.mark.asyncio(loop_scope="module")

SINGLE = "{name: one, entrypoint: run, searcher: {name: single, metric: loss}}"


async def runs_of(api: Api, project: int) -> list[dict[str, Any]]:
    return list((await api.ok("POST", "/api/v1/runs", json={"projectId": project, "limit": -1}))["runs"])


async def act(api: Api, verb: str, project: int, ids: list[int], **body: Any) -> dict[int, str]:
    request = {"runIds": ids, "projectId": project, "sourceProjectId": project, **body}
    answer = await api.ok("POST", f"/api/v1/runs/{verb}", json=request)
    return {result["id"]: result["error"] for result in answer["results"]}


@pytest.mark.parametrize("case", SITUATIONS, ids=str)
async def test_a_run_in_a_situation(api: Api, case: Situation) -> None:
    project, elsewhere = [await api.rows.project(f"{case} {uuid4()}") for _ in range(2)]
    experiment = await api.create(SINGLE if case.search == "single" else CONFIG, projectId=project)
    run = (await runs_of(api, project))[0]["id"]
    for table, ident, values in (("trial", run, case.run), ("experiment", experiment, case.experiment)):
        if values:
            await getattr(api.rows, f"set_{table}")(ident, **values)
    if case.folder:
        await api.rows.set_project(project, **case.folder)
    said = await act(api, case.verb, project, [run], destinationProjectId=elsewhere, **case.body)
    expected = case.error.format(run=run, experiment=experiment)
    assert said[run].startswith(expected) if expected else said[run] == ""


async def test_pausing_and_resuming_is_done_to_the_experiment(api: Api) -> None:
    project = await api.rows.project("paused runs")
    single, several = await api.create(SINGLE, projectId=project), await api.create(CONFIG, projectId=project)
    runs = await runs_of(api, project)
    (run,) = [one["id"] for one in runs if one["experiment"]["id"] == single]
    part = next(one["id"] for one in runs if one["experiment"]["id"] == several)
    refusal = f"Cannot pause/unpause run '{part}' (part of multi-trial)."
    assert await act(api, "resume", project, [run, part]) == {run: "", part: refusal}
    assert (await api.rows.experiment(single)).state == "ACTIVE"
    assert await act(api, "pause", project, [run, part]) == {run: "", part: refusal}
    assert (await api.rows.experiment(single)).state == "PAUSED"
    await api.rows.set_experiment(single, state="COMPLETED")
    said = await act(api, "pause", project, [run])
    assert said[run].startswith("Failed to pause associated experiment: ")
    await api.rows.set_trial(run, archived=True)
    assert await act(api, "resume", project, [run]) == {run: "Run is archived."}


async def test_killing_and_archiving(api: Api) -> None:
    project = await api.rows.project("killed runs")
    experiment = await api.create(CONFIG, projectId=project)
    ids = [one["id"] for one in await runs_of(api, project)]
    first, rest = ids[0], ids[1:]
    assert await act(api, "archive", project, [first]) == {first: "Run is not in terminal state."}
    by_id = json.dumps({"filterGroup": group("and", field("id", "=", first, "RUN")), "showArchived": False})
    assert await act(api, "kill", project, [], filter=by_id) == {first: ""}
    states = {one["id"]: one["state"] for one in await runs_of(api, project)}
    assert states[first] == "STATE_STOPPING_KILLED"
    assert {states[one] for one in rest} <= {"STATE_PAUSED"}
    await api.rows.set_trial(first, state="CANCELED")
    for verb in ("kill", "archive", "archive"):
        assert await act(api, verb, project, [first]) == {first: ""}
    assert [one["archived"] for one in await runs_of(api, project) if one["id"] == first] == [True]
    assert await act(api, "unarchive", project, [first, first]) == {first: ""}
    assert [one["archived"] for one in await runs_of(api, project) if one["id"] == first] == [False]
    await api.rows.set_experiment(experiment, archived=True)
    for verb in ("archive", "unarchive"):
        expected = f"Run is part of archived Search (id: '{experiment}')."
        assert await act(api, verb, project, [first]) == {first: expected}


async def test_runs_that_are_not_meant_or_not_there(api: Api) -> None:
    project = await api.rows.project("no runs")
    elsewhere = await api.rows.project("other runs")
    await api.create(SINGLE, projectId=elsewhere)
    (run,) = [one["id"] for one in await runs_of(api, elsewhere)]
    for verb in VERBS:
        expected = {one: f"Run with id '{one}' not found in project with id '{project}'" for one in (run, 99999)}
        assert await act(api, verb, project, [run, 99999], destinationProjectId=elsewhere) == expected
        places = {"projectId": project, "sourceProjectId": project, "destinationProjectId": elsewhere}
        both = {"runIds": [run], **places, "filter": "{}"}
        said = await api.refused(400, "POST", f"/api/v1/runs/{verb}", json=both)
        assert said == "if filter is provided run id list must be empty"
        nonsense = {"runIds": [], **places, "filter": "{}"}
        assert "filterGroup" in await api.refused(400, "POST", f"/api/v1/runs/{verb}", json=nonsense)
    assert await act(api, "kill", 0, [99999]) == {99999: "Run with id '99999' not found"}


def shown(runs: list[dict[str, Any]]) -> dict[int, str]:
    return {one["id"]: one["localId"] for one in runs}


async def find(api: Api, address: str, operator: str = "=") -> list[int]:
    text = json.dumps({"filterGroup": group("and", field("localId", operator, address, "RUN")), "showArchived": True})
    return [one["id"] for one in (await api.ok("POST", "/api/v1/runs", json={"filter": text, "limit": -1}))["runs"]]


async def key_of(api: Api, project: int) -> str:
    return str((await api.ok("GET", f"/api/v1/projects/{project}"))["project"]["key"])


async def test_runs_move_with_their_experiment_and_keep_their_addresses(api: Api) -> None:
    source, target = await api.rows.project("moved from"), await api.rows.project("moved to")
    old, new = await key_of(api, source), await key_of(api, target)
    several, single = await api.create(CONFIG, projectId=source), await api.create(SINGLE, projectId=source)
    await api.create(SINGLE, projectId=target)
    before = shown(await runs_of(api, source))
    mine = [row.id for row in await api.rows.trials_of(several)]
    assert list(before.values()) == [f"{old}-{n}" for n in range(1, len(mine) + 2)]

    assert await act(api, "move", source, [mine[1]], destinationProjectId=source) == {}
    said = await act(api, "move", source, [mine[1], mine[0]], destinationProjectId=target)
    assert said == dict.fromkeys(mine, "")
    after = shown(await runs_of(api, target))
    assert [after[run] for run in mine] == [f"{new}-{n}" for n in range(2, len(mine) + 2)]
    assert (await api.rows.experiment(several)).project_id == target
    (left,) = await api.rows.trials_of(single)
    assert list(shown(await runs_of(api, source))) == [left.id]
    for run in mine:
        assert await find(api, before[run]) == await find(api, after[run]) == [run]
        assert run not in await find(api, before[run].lower(), "!=")

    # Back again, by a filter, and the project gets another key: all addresses lead there, no number comes twice.
    await api.admin.patch(f"/api/v1/projects/{target}", json={"key": "NEWER"})
    by_state = json.dumps({"filterGroup": group("and", field("experimentId", "=", several, "RUN"))})
    assert await act(api, "move", target, [], filter=by_state, destinationProjectId=source) == dict.fromkeys(mine, "")
    newest = shown(await runs_of(api, source))
    assert sorted({*newest.values()} & {*before.values()}) == [before[left.id]]
    number = after[mine[0]].split("-")[1]
    for address in (before[mine[0]], after[mine[0]], f"newer-{number}", newest[mine[0]]):
        assert await find(api, address) == [mine[0]]
    assert await find(api, f"{old}-99") == await find(api, "no address") == []


async def test_a_run_keeps_its_address_when_its_project_moves_and_gets_another_key(api: Api) -> None:
    project, other = await api.rows.project("wandering"), await api.rows.project("home")
    await api.create(SINGLE, projectId=project)
    (run,) = await runs_of(api, project)
    home = (await api.ok("GET", f"/api/v1/projects/{other}"))["project"]["workspaceId"]
    moved = await api.admin.post(f"/api/v1/projects/{project}/move", json={"destinationWorkspaceId": home})
    assert moved.status_code == 200, moved.text
    changed = await api.admin.patch(f"/api/v1/projects/{project}", json={"key": "HOMED"})
    assert changed.status_code == 200, changed.text
    assert shown(await runs_of(api, project)) == {run["id"]: "HOMED-1"}
    assert await find(api, run["localId"]) == await find(api, "HOMED-1") == [run["id"]]


async def test_projects_that_runs_cannot_leave_or_join_refuse_the_whole_request(api: Api) -> None:
    source, target = await api.rows.project("closed source"), await api.rows.project("closed target")
    body = {"runIds": [1], "sourceProjectId": source, "destinationProjectId": target}
    for project, message in (
        (source, f"project ({source}) is archived and cannot have runs moved from it"),
        (target, f"project ({target}) is archived and cannot add new runs"),
    ):
        await api.rows.set_project(project, archived=True)
        assert await api.refused(400, "POST", "/api/v1/runs/move", json=body) == message
        await api.rows.set_project(project, archived=False)
    async with api.app.db.transaction() as connection:
        workspace = (await api.ok("GET", f"/api/v1/projects/{target}"))["project"]["workspaceId"]
        await connection.execute(update(workspaces).where(workspaces.c.id == workspace).values(archived=True))
    assert "cannot add new runs" in await api.refused(400, "POST", "/api/v1/runs/move", json=body)
    for unknown in ({"sourceProjectId": 99999}, {"destinationProjectId": 99999}):
        said = await api.refused(404, "POST", "/api/v1/runs/move", json={**body, **unknown})
        assert said == "project '99999' not found"


async def test_a_deleted_run_is_gone_and_its_files_are_asked_for(api: Api) -> None:
    project = await api.rows.project("deleted runs")
    experiment = await api.create(CONFIG, projectId=project)
    worst, best, other, *_ = [row.id for row in await api.rows.trials_of(experiment)]
    for run, value in ((worst, 3.0), (best, 1.0), (other, 2.0)):
        await api.rows.set_trial(run, state="COMPLETED", searcher_metric_signed=value)
        await api.rows.metric(run, 5, "validation", {"loss": value})
    await api.rows.set_experiment(experiment, best_trial_id=best)
    doomed = [await api.rows.checkpoint(experiment, best, step) for step in (1, 2)]
    kept = await api.rows.checkpoint(experiment, best, 3)
    await api.rows.set_trial(other, warm_start_checkpoint_uuid=kept)
    stored = await api.rows.storage({"type": "directory", "container_path": "/elsewhere"})
    away = await api.rows.checkpoint(experiment, best, 4, storage_id=stored)
    await api.rows.checkpoint(experiment, worst, 1)
    task = (await api.ok("GET", f"/api/v1/trials/{best}"))["trial"]["taskId"]

    assert await act(api, "delete", project, [best, best]) == {best: ""}
    assert await api.refused(404, "GET", f"/api/v1/trials/{best}") == f"trial '{best}' not found"
    await api.refused(404, "GET", f"/api/v1/tasks/{task}")
    await api.refused(404, "GET", f"/api/v1/trials/metrics/trial_metrics?trialIds={best}")
    assert best not in shown(await runs_of(api, project))
    assert (await api.rows.experiment(experiment)).best_trial_id == other
    asked = {(one.storage_id, tuple(one.uuids), tuple(one.globs)) for one in await api.rows.gc_requests(experiment)}
    assert asked == {(None, tuple(doomed), ("**/*",)), (stored, (away,), ("**/*",))}
    assert subjects.event("trial", best, "deleted") in (await api.rows.announced())[-4:]
    async with api.app.db.read() as connection:
        (left,) = await connection.execute(select(deleted_trials).where(deleted_trials.c.trial_id == best))
    assert left.task_ids == [task]
    assert await act(api, "delete", project, [best]) == {
        best: f"Run with id '{best}' not found in project with id '{project}'"
    }


async def test_an_experiment_whose_only_run_was_deleted_goes_on_with_a_new_one(api: Api) -> None:
    project = await api.rows.project("begun again")
    experiment = await api.create(SINGLE, projectId=project)
    (run,) = await runs_of(api, project)
    await api.rows.set_trial(run["id"], state="COMPLETED")
    await api.rows.set_experiment(experiment, state="COMPLETED")
    assert await act(api, "delete", project, [run["id"]]) == {run["id"]: ""}
    assert (await api.ok("GET", f"/api/v1/experiments/{experiment}/trials"))["trials"] == []
    await api.ok("POST", "/api/v1/experiments/continue", json={"id": experiment})
    assert (await api.rows.experiment(experiment)).state == "ACTIVE"
