"""PATCH, labels, retention policies and the deletion of files."""

from __future__ import annotations

from typing import Any

import pytest

from libs.events import subjects
from tests.integration.api.experiments.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def patched(api: Api, experiment_id: int, **body: Any) -> dict[str, Any]:
    answer = await api.ok("PATCH", f"/api/v1/experiments/{experiment_id}", json={"id": experiment_id, **body})
    experiment: dict[str, Any] = answer["experiment"]
    return experiment


async def test_only_what_is_sent_changes(api: Api) -> None:
    experiment_id = await api.create("{name: a, entrypoint: run, searcher: {name: single, metric: loss}}")
    nulls = dict.fromkeys(("name", "description", "notes", "labels", "resources", "checkpointStorage"))
    before = await patched(api, experiment_id, **nulls)
    assert (before["name"], before["description"], before["config"]["description"]) == ("a", "", None)

    renamed = await patched(api, experiment_id, name="b", description="", notes="n", labels=["x", "y", "x"])
    assert (renamed["name"], renamed["notes"], renamed["labels"]) == ("b", "n", ["x", "y"])
    assert renamed["config"]["name"] == "b"
    assert renamed["config"]["description"] is None
    assert renamed["originalConfig"].startswith("{name: a,")
    described = await patched(api, experiment_id, description="d", labels=[])
    assert (described["description"], described["labels"], described["notes"]) == ("d", [], "n")
    assert (await patched(api, experiment_id, description=""))["config"]["description"] == ""
    assert (await api.rows.announced())[-1] == subjects.event("experiment", experiment_id, "edited")


async def test_mistakes_change_nothing(api: Api) -> None:
    experiment_id = await api.create()
    path = f"/api/v1/experiments/{experiment_id}"
    before = (await api.rows.experiment(experiment_id)).config
    blank = await api.refused(400, "PATCH", path, json={"name": " ", "notes": "x"})
    assert blank == "`name` must not be an empty or whitespace string"
    for resources in ({"priority": 100}, {"weight": 0}, {"maxSlots": -1}, {"maxSlots": 0}):
        await api.refused(400, "PATCH", path, json={"description": "changed", "resources": resources})
    await api.refused(400, "PATCH", path, json={"checkpointStorage": {"saveTrialBest": -1}})
    row = await api.rows.experiment(experiment_id)
    assert (row.config, row.notes) == (before, "")
    await api.refused(404, "PATCH", "/api/v1/experiments/999999", json={"name": "x"})


async def test_place_in_the_queue_follows_the_configuration(api: Api) -> None:
    experiment_id = await api.create()
    resources = {"priority": 7, "weight": 2.5, "maxSlots": 3}
    shown = (await patched(api, experiment_id, resources=resources))["config"]["resources"]
    job = await api.rows.job((await api.rows.experiment(experiment_id)).job_id)
    assert (shown["priority"], shown["weight"], shown["max_slots"]) == (7, 2.5, 3)
    assert (job.priority, job.weight, job.max_slots) == (7, 2.5, 3)
    assert subjects.event("job", job.job_id, "changed") in (await api.rows.announced())[-2:]

    unlimited = await patched(api, experiment_id, resources={"maxSlots": None})
    assert unlimited["config"]["resources"]["max_slots"] is None
    assert unlimited["config"]["resources"]["priority"] == 7
    assert (await api.rows.job(job.job_id)).max_slots is None

    await api.rows.set_experiment(experiment_id, state="COMPLETED")
    message = await api.refused(404, "PATCH", f"/api/v1/experiments/{experiment_id}", json={"resources": {"weight": 1}})
    assert message == f"experiment '{experiment_id}' not found"


async def test_labels_one_by_one(api: Api) -> None:
    experiment_id = await api.create("{entrypoint: run, searcher: {name: single, metric: loss}}")
    path = f"/api/v1/experiments/{experiment_id}/labels"
    assert await api.ok("PUT", f"{path}/a%20b") == {"labels": ["a b"]}
    assert await api.ok("PUT", f"{path}/c") == {"labels": ["a b", "c"]}
    announced = await api.rows.announced()
    assert await api.ok("PUT", f"{path}/c") == {"labels": ["a b", "c"]}
    assert await api.ok("DELETE", f"{path}/nothing") == {"labels": ["a b", "c"]}
    assert await api.rows.announced() == announced
    assert await api.ok("DELETE", f"{path}/a%20b") == {"labels": ["c"]}
    await api.refused(400, "PUT", f"{path}/%20")
    await api.refused(404, "PUT", "/api/v1/experiments/999999/labels/a")


async def test_a_label_that_is_too_long_is_refused_wherever_it_comes_from(api: Api) -> None:
    experiment_id = await api.create()
    path = f"/api/v1/experiments/{experiment_id}"
    says = "must not have more than 256 characters: 'llllllllllllllllllll'..."
    assert f"label: a label {says}" in await api.refused(400, "PUT", f"{path}/labels/{'l' * 257}")
    assert f"labels: a label {says}" in await api.refused(400, "PATCH", path, json={"labels": ["a", "l" * 257]})


async def test_new_retention_policy_cleans_up_after_what_has_ended(api: Api) -> None:
    experiment_id = await api.create()
    trial_id = await api.rows.trial(experiment_id)
    storage_id = await api.rows.storage({"type": "s3", "bucket": "b"})
    uuids = []
    for step, loss in ((10, 0.3), (20, 0.1), (30, 0.2), (40, None)):
        if loss is not None:
            await api.rows.metric(trial_id, step, "validation", {"loss": loss})
        storage = storage_id if step == 10 else None
        uuids.append(await api.rows.checkpoint(experiment_id, trial_id, step, storage_id=storage))
    gone = await api.rows.checkpoint(experiment_id, trial_id, 5, state="DELETED")
    used = await api.rows.checkpoint(experiment_id, trial_id, 6)
    await api.rows.trial(experiment_id, warm_start_checkpoint_uuid=used)
    waiting = await api.rows.checkpoint(experiment_id, trial_id, 7)
    await api.create(f"{{entrypoint: a, searcher: {{name: single, metric: x, source_checkpoint_uuid: {waiting}}}}}")

    policy = {"save_experiment_best": 0, "save_trial_best": 1, "save_trial_latest": 1}
    preview = f"/experiments/{experiment_id}/preview_gc"
    found = (await api.client.get(preview, params=policy)).json()
    assert found["metric_name"] == "loss"
    assert [(entry["UUID"], entry["StepsCompleted"]) for entry in found["checkpoints"]] == [
        (uuids[0], 10),
        (uuids[2], 30),
    ]
    assert found["checkpoints"][0]["ValidationMetrics"] == {"loss": 0.3}
    assert gone not in str(found)
    message = await api.refused(400, "GET", preview, params={"save_trial_best": 1})
    assert message == "missing parameter: save_experiment_best"
    await api.refused(404, "GET", "/experiments/999999/preview_gc", params=policy)

    wanted = {"saveExperimentBest": 0, "saveTrialBest": 0, "saveTrialLatest": 1}
    live = await patched(api, experiment_id, checkpointStorage=wanted)
    assert live["config"]["checkpoint_storage"]["save_trial_best"] == 0
    assert await api.rows.gc_requests(experiment_id) == []

    await api.rows.set_experiment(experiment_id, state="COMPLETED")
    await patched(api, experiment_id, checkpointStorage=wanted)
    requests = {row.storage_id: row for row in await api.rows.gc_requests(experiment_id)}
    assert requests[storage_id].uuids == [uuids[0]]
    assert requests[None].uuids == [uuids[1], uuids[2]]
    assert {(tuple(row.globs), row.delete_tensorboards) for row in requests.values()} == {(("**/*",), False)}


async def test_an_experiment_from_long_ago_may_have_no_storage(api: Api) -> None:
    experiment_id = await api.create()
    config = dict((await api.rows.experiment(experiment_id)).config)
    del config["checkpoint_storage"]
    await api.rows.set_experiment(experiment_id, config=config)
    wanted = {"checkpointStorage": {"saveTrialBest": 1}}
    message = await api.refused(400, "PATCH", f"/api/v1/experiments/{experiment_id}", json=wanted)
    assert "has no checkpoint_storage" in message


async def test_deleting_checkpoints(api: Api) -> None:
    one, two = await api.create(), await api.create()
    first, second = await api.rows.trial(one), await api.rows.trial(two)
    storage_id = await api.rows.storage({"type": "s3", "bucket": "b"})
    a = await api.rows.checkpoint(one, first, 10)
    b = await api.rows.checkpoint(one, first, 20)
    c = await api.rows.checkpoint(one, first, 30, storage_id=storage_id)
    d = await api.rows.checkpoint(two, second, 10)

    body = {"checkpointUuids": [a, b, c, d, a]}
    assert await api.ok("DELETE", "/api/v1/checkpoints", json=body) == {}
    grouped = [(row.storage_id, row.uuids, row.globs) for row in await api.rows.gc_requests(one)]
    assert sorted(grouped, key=str) == sorted([(None, [a, b], ["**/*"]), (storage_id, [c], ["**/*"])], key=str)
    assert [row.uuids for row in await api.rows.gc_requests(two)] == [[d]]

    await api.ok("POST", "/api/v1/checkpoints/rm", json={"checkpointUuids": [d], "checkpointGlobs": ["code/*"]})
    await api.ok("POST", "/api/v1/checkpoints/rm", json={"checkpointUuids": [d], "checkpointGlobs": []})
    assert [row.globs for row in await api.rows.gc_requests(two)] == [["**/*"], ["code/*"], []]

    for globs, message in (([""], "cannot have empty string glob"), (["../x"], "glob '../x' cannot contain '..'")):
        body = {"checkpointUuids": [a], "checkpointGlobs": globs}
        assert await api.refused(400, "POST", "/api/v1/checkpoints/rm", json=body) == message
    body = {"checkpointUuids": ["x", a, "y"]}
    assert await api.refused(404, "DELETE", "/api/v1/checkpoints", json=body) == "checkpoints 'x, y' not found"
    assert len(await api.rows.gc_requests(one)) == 2


async def test_deleting_tensorboard_files(api: Api) -> None:
    experiment_id = await api.create()
    await api.ok("DELETE", f"/api/v1/experiments/{experiment_id}/tensorboard-files")
    (request,) = await api.rows.gc_requests(experiment_id)
    assert (request.uuids, request.globs, request.delete_tensorboards) == ([], [], True)
    await api.refused(404, "DELETE", "/api/v1/experiments/999999/tensorboard-files")
