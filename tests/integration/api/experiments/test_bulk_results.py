"""Actions on many experiments: what is said of each, which is what the action on it alone says."""

from __future__ import annotations

from operator import attrgetter
from uuid import uuid4

import pytest

from tests.integration.api.experiments.conftest import Api
from tests.scenarios.experiment_results import ACTIONS, SITUATIONS, Action

pytestmark = pytest.mark.asyncio(loop_scope="module")

MISSING = 999_999
CONFIG = "{name: one, entrypoint: run, searcher: {name: single, metric: loss}}"


@pytest.mark.parametrize("action", ACTIONS, ids=attrgetter("verb"))
async def test_what_is_said_of_each(api: Api, action: Action) -> None:
    project, elsewhere = [await api.rows.project(f"{action.verb} {uuid4()}") for _ in range(2)]
    ids = {"missing": MISSING}
    for name, columns in SITUATIONS.items():
        ids[name] = await api.create(CONFIG, projectId=project)
        await api.rows.set_experiment(ids[name], **columns)
    request = {
        "experimentIds": list(ids.values()),
        "projectId": project,
        "destinationProjectId": elsewhere,
        **dict(action.body),
    }
    answer = await api.ok(action.method, f"/api/v1/projects/{project}/experiments/{action.verb}", json=request)
    said = {result["id"]: result["error"] for result in answer["results"]}
    assert {name: said.get(ident) for name, ident in ids.items()} == action.said(ids)
