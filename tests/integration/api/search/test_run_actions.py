"""Actions on many runs: what becomes of each, and why some are left as they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.api.experiments.conftest import CONFIG, Api
from tests.integration.api.search.conftest import field, group

pytestmark = pytest.mark.asyncio(loop_scope="module")

SINGLE = "{name: one, entrypoint: run, searcher: {name: single, metric: loss}}"


async def runs_of(api: Api, project: int) -> list[dict[str, Any]]:
    return list((await api.ok("POST", "/api/v1/runs", json={"projectId": project, "limit": -1}))["runs"])


async def act(api: Api, verb: str, project: int, ids: list[int], **body: Any) -> dict[int, str]:
    request = {"runIds": ids, "projectId": project, **body}
    answer = await api.ok("POST", f"/api/v1/runs/{verb}", json=request)
    return {result["id"]: result["error"] for result in answer["results"]}


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
    for verb in ("kill", "pause", "resume", "archive", "unarchive"):
        expected = {one: f"Run with id '{one}' not found in project with id '{project}'" for one in (run, 99999)}
        assert await act(api, verb, project, [run, 99999]) == expected
        both = {"runIds": [run], "projectId": project, "filter": "{}"}
        said = await api.refused(400, "POST", f"/api/v1/runs/{verb}", json=both)
        assert said == "if filter is provided run id list must be empty"
        nonsense = {"runIds": [], "projectId": project, "filter": "{}"}
        assert "filterGroup" in await api.refused(400, "POST", f"/api/v1/runs/{verb}", json=nonsense)
    assert await act(api, "kill", 0, [99999]) == {99999: "Run with id '99999' not found"}
