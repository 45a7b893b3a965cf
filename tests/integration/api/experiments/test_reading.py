"""Lists and single objects: filters, orders, pages, and what stands in each field."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile
import zipfile
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from deploy.local.servers.ports import free_port
from tests.integration.api.experiments.conftest import CONFIG, Api
from tests.integration.api.experiments.rows import START

pytestmark = pytest.mark.asyncio(loop_scope="module")


def config(name: str, *, pool: str = "default", description: str = "", labels: str = "[]", best: str = "true") -> str:
    return (
        f"{{name: '{name}', description: '{description}', labels: {labels}, entrypoint: run,"
        f" resources: {{resource_pool: {pool}}}, searcher: {{name: single, metric: loss, smaller_is_better: {best}}}}}"
    )


@pytest_asyncio.fixture(loop_scope="module")
async def project(api: Api, request: pytest.FixtureRequest) -> int:
    return await api.rows.project(request.node.name[:80])


async def listed(api: Api, project: int, **query: Any) -> list[str]:
    page = await api.ok("GET", "/api/v1/experiments", params={"projectId": project, **query})
    return [experiment["name"] for experiment in page["experiments"]]


async def test_filters(api: Api, project: int) -> None:
    alpha = await api.create(config("Alpha", description="50% done", labels="[x, y]"), projectId=project)
    beta = await api.create(config("beta", labels="[x]"), projectId=project)
    gamma = (await api.admin.post("/api/v1/experiments", json={"config": config("gamma"), "projectId": project})).json()
    await api.rows.set_experiment(beta, state="COMPLETED", archived=True)

    for expected, query in (
        (["Alpha", "beta", "gamma"], {}),
        (["Alpha"], {"name": "ALPH"}),
        (["beta"], {"name": "_eta"[1:]}),
        ([], {"name": "_eta"}),
        (["Alpha"], {"description": "0%"}),
        (["Alpha", "beta"], {"labels": ["x"]}),
        (["Alpha"], {"labels": ["x", "y"]}),
        (["beta"], {"archived": True}),
        (["Alpha", "gamma"], {"archived": False}),
        (["beta"], {"states": ["STATE_COMPLETED", "STATE_ERROR"]}),
        ([], {"states": ["STATE_QUEUED"]}),
        (["Alpha", "beta"], {"users": ["determined"]}),
        (["gamma"], {"userIds": [1]}),
        (["gamma"], {"experimentIdFilter.gt": beta}),
        (["Alpha", "beta"], {"experimentIdFilter.lte": beta}),
        (["Alpha"], {"experimentIdFilter.incl": [alpha, 999_999]}),
        (["beta", "gamma"], {"experimentIdFilter.notIn": [alpha]}),
    ):
        assert await listed(api, project, **query) == expected, query
    assert gamma["experiment"]["username"] == "admin"
    message = await api.refused(404, "GET", "/api/v1/experiments", params={"projectId": 999_999})
    assert message == "project '999999' not found"


async def test_archived_projects_are_out_of_sight_unless_asked_for(api: Api, project: int) -> None:
    experiment_id = await api.create(projectId=project)
    query = {"archived": False, "experimentIdFilter.incl": experiment_id}
    await api.rows.set_project(project, archived=True)
    assert await listed(api, 0, **query) == []
    assert await listed(api, project, **query) == ["digits"]
    experiment = (await api.ok("GET", f"/api/v1/experiments/{experiment_id}"))["experiment"]
    assert experiment["parentArchived"] is True


async def test_orders(api: Api, project: int) -> None:
    one = await api.create(config("c", pool="other"), projectId=project)
    two = await api.create(config("a", description="z"), projectId=project)
    three = await api.create(config("b"), projectId=project, parentId=one)
    await api.rows.set_experiment(one, progress=0.5, state="COMPLETED", end_time=START, checkpoint_size=2**40)
    await api.rows.set_experiment(two, start_time=START, checkpoint_count=3)
    trial = await api.rows.trial(three, searcher_metric_value=-1.0)
    await api.rows.set_experiment(three, best_trial_id=trial)

    for by, ascending, descending in (
        ("ID", "cab", "bac"),
        ("UNSPECIFIED", "cab", "bac"),
        ("NAME", "abc", "cba"),
        ("DESCRIPTION", "cba", "abc"),
        ("START_TIME", "cba", "abc"),
        ("END_TIME", "cab", "cba"),
        ("STATE", "cab", "bac"),
        ("NUM_TRIALS", "cab", "bac"),
        ("PROGRESS", "abc", "cba"),
        ("USER", "cab", "bac"),
        ("FORKED_FROM", "bca", "bac"),
        ("RESOURCE_POOL", "abc", "cba"),
        ("PROJECT_ID", "cab", "bac"),
        ("CHECKPOINT_SIZE", "abc", "cba"),
        ("CHECKPOINT_COUNT", "cba", "abc"),
        ("SEARCHER_METRIC_VAL", "bca", "bac"),
    ):
        for direction, expected in (("ASC", ascending), ("DESC", descending)):
            query = {"sortBy": f"SORT_BY_{by}", "orderBy": f"ORDER_BY_{direction}"}
            assert "".join(await listed(api, project, **query)) == expected, query


async def test_pages(api: Api, project: int) -> None:
    for name in "abcde":
        await api.create(config(name), projectId=project)

    async def page(**query: Any) -> tuple[str, tuple[int, int, int]]:
        answer = await api.ok("GET", "/api/v1/experiments", params={"projectId": project, **query})
        at = answer["pagination"]
        names = "".join(experiment["name"] for experiment in answer["experiments"])
        return names, (at["startIndex"], at["endIndex"], at["total"])

    assert await page() == ("abcde", (0, 5, 5))
    assert await page(limit=2, offset=1) == ("bc", (1, 3, 5))
    assert await page(offset=-2) == ("de", (3, 5, 5))
    assert await page(limit=-1, offset=4) == ("e", (4, 5, 5))
    assert await page(limit=-2) == ("", (0, 0, 5))
    assert await page(offset=9) == ("", (5, 5, 5))
    await api.refused(400, "GET", "/api/v1/experiments", params={"limit": -3})


async def test_fields_of_an_experiment(api: Api) -> None:
    experiment_id = await api.create_empty()
    trial_id = await api.rows.trial(experiment_id, searcher_metric_value=0.25)
    await api.rows.set_experiment(
        experiment_id, notes="long", best_trial_id=trial_id, progress=1.0, checkpoint_size=2**40, checkpoint_count=2
    )
    shown = (await api.ok("GET", f"/api/v1/experiments/{experiment_id}"))["experiment"]
    assert {key: shown[key] for key in ("notes", "trialIds", "numTrials", "progress", "checkpointSize")} == {
        "notes": "long",
        "trialIds": [trial_id],
        "numTrials": 1,
        "progress": 1.0,
        "checkpointSize": "1099511627776",
    }
    assert (shown["bestTrialId"], shown["bestTrialSearcherMetric"]) == (trial_id, 0.25)
    query = {"experimentIdFilter.incl": experiment_id}
    (short,) = (await api.ok("GET", "/api/v1/experiments", params=query))["experiments"]
    assert (short["notes"], short["trialIds"], short["bestTrialId"]) == ("omitted", [], trial_id)
    assert "bestTrialSearcherMetric" not in short
    (more,) = (await api.ok("GET", "/api/v1/experiments", params={**query, "showTrialData": True}))["experiments"]
    assert more["bestTrialSearcherMetric"] == 0.25
    assert await api.refused(404, "GET", "/api/v1/experiments/999999") == "experiment '999999' not found"


async def test_what_is_shown_of_duration_owner_and_search_space(api: Api) -> None:
    """By itself, in the list and in the search."""
    search_space = "hyperparameters: {lr: {type: double, minval: 0.5, maxval: 2.0}, fixed: 8}"
    text = f"{{entrypoint: run, searcher: {{name: random, metric: loss, max_trials: 1}}, {search_space}}}"
    experiment_id = await api.create_empty(config=text)

    async def seen() -> list[dict[str, Any]]:
        single = (await api.ok("GET", f"/api/v1/experiments/{experiment_id}"))["experiment"]
        query = {"experimentIdFilter.incl": experiment_id}
        (listed,) = (await api.ok("GET", "/api/v1/experiments", params=query))["experiments"]
        field = {"kind": "field", "columnName": "id", "operator": "=", "value": experiment_id}
        group = {"kind": "group", "conjunction": "and", "children": [field]}
        wanted = {"filter": json.dumps({"filterGroup": group, "showArchived": True})}
        (found,) = (await api.ok("POST", "/api/v1/experiments-search", json=wanted))["experiments"]
        return [single, listed, found["experiment"]]

    for each in await seen():
        assert each["displayName"] == each["username"] == "determined"
        assert each["hyperparameters"] == each["config"]["hyperparameters"]
        assert each["hyperparameters"]["lr"] == {"type": "double", "minval": 0.5, "maxval": 2}
        assert 0 <= each["duration"] < 3600, "until now"
    end_time = START + timedelta(seconds=90.9)
    await api.rows.set_experiment(experiment_id, state="COMPLETED", start_time=START, end_time=end_time)
    assert [each["duration"] for each in await seen()] == [90, 90, 90]


async def test_fields_of_a_trial(api: Api) -> None:
    experiment_id = await api.create_empty(activate=True)
    trial_id = await api.rows.trial(
        experiment_id, restarts=3, warm_start_checkpoint_uuid="w", metadata={"a": {"b": 1.0}}, total_batches=30
    )
    await api.rows.allocation(trial_id, "RUNNING", start_time=START)
    await api.rows.end_allocations(trial_id)
    await api.rows.next_task(trial_id)
    best = await api.rows.metric(trial_id, 10, "validation", {"loss": 0.5, "other": "NaN"})
    latest = await api.rows.metric(trial_id, 20, "validation", {"loss": 1.0})
    await api.rows.metric(trial_id, 5, "validation", {"loss": 0.5})
    as_good = await api.rows.checkpoint(experiment_id, trial_id, 5)
    unvalidated = await api.rows.checkpoint(experiment_id, trial_id, 15)
    good = await api.rows.checkpoint(experiment_id, trial_id, 10)
    await api.rows.checkpoint(experiment_id, trial_id, 20)
    await api.rows.set_trial(
        trial_id, best_validation_id=best, latest_validation_id=latest, searcher_metric_value=float("-inf")
    )

    trial = (await api.ok("GET", f"/api/v1/trials/{trial_id}"))["trial"]
    assert (await api.ok("GET", f"/api/v1/experiments/{experiment_id}/trials"))["trials"] == [trial]
    assert trial["restarts"] == 2
    assert trial["wallClockTime"] == 30
    assert (trial["taskId"], trial["taskIds"][1]) == (trial["taskIds"][0], trial["taskId"] + "-1")
    assert trial["bestValidation"]["metrics"] == {"avgMetrics": {"loss": 0.5, "other": "NaN"}, "batchMetrics": []}
    assert (trial["latestValidation"]["totalBatches"], trial["latestValidation"]["numInputs"]) == (20, 0)
    assert trial["bestCheckpoint"]["uuid"] == good not in {unvalidated, as_good}, "the newest of those with this value"
    assert trial["bestCheckpoint"]["resources"] == {"weights.pt": str(2**40)}
    assert (trial["searcherMetricValue"], trial["warmStartCheckpointUuid"]) == ("-Infinity", "w")
    assert trial["metadata"] == {"a": {"b": 1}}
    assert await api.refused(404, "GET", "/api/v1/trials/999999") == "trial '999999' not found"
    await api.refused(404, "GET", "/api/v1/experiments/999999/trials")
    await api.refused(404, "GET", "/api/v1/experiments/999999/trials", params={"limit": -3})
    await api.refused(404, "GET", "/api/v1/experiments/999999/trials", params={"states": "STATE_ACTIVE"})
    none = {"states": "STATE_STOPPING_KILLED"}
    assert (await api.ok("GET", f"/api/v1/experiments/{experiment_id}/trials", params=none))["trials"] == []


async def test_all_trials_are_listed_however_many(api: Api) -> None:
    """More than a statement takes arguments (32,767)."""
    experiment_id = await api.create_empty()
    await api.rows.many_trials(experiment_id, 33_000)
    page = await api.ok("GET", f"/api/v1/experiments/{experiment_id}/trials", params={"limit": -1})
    assert len(page["trials"]) == page["pagination"]["total"] == 33_000
    assert {trial["state"] for trial in page["trials"]} == {"STATE_QUEUED"}


async def test_trials_in_order(api: Api) -> None:
    experiment_id = await api.create_empty(config("orders", best="false"))
    one = await api.rows.trial(experiment_id, state="COMPLETED", end_time=START + timedelta(seconds=9), restarts=1)
    two = await api.rows.trial(experiment_id, searcher_metric_signed=-5.0, total_batches=7, log_retention_days=3)
    three = await api.rows.trial(experiment_id, start_time=START - timedelta(days=9), checkpoint_size=1)
    for trial_id, values in ((one, [3.0, 1.0]), (two, [1.0, 2.0]), (three, ["NaN"])):
        for step, value in enumerate(values):
            latest = await api.rows.metric(trial_id, step, "validation", {"loss": value})
        await api.rows.set_trial(trial_id, latest_validation_id=latest)
    ids = {"1": one, "2": two, "3": three}
    for by, ascending, descending in (
        ("ID", "123", "321"),
        ("START_TIME", "312", "213"),
        ("END_TIME", "123", "132"),
        ("STATE", "231", "132"),
        ("BEST_VALIDATION_METRIC", "213", "231"),
        ("LATEST_VALIDATION_METRIC", "213", "312"),
        ("BATCHES_PROCESSED", "132", "231"),
        ("RESTARTS", "231", "132"),
        ("CHECKPOINT_SIZE", "123", "321"),
        ("LOG_RETENTION_DAYS", "213", "231"),
    ):
        for direction, expected in (("ASC", ascending), ("DESC", descending)):
            query = {"sortBy": f"SORT_BY_{by}", "orderBy": f"ORDER_BY_{direction}"}
            found = (await api.ok("GET", f"/api/v1/experiments/{experiment_id}/trials", params=query))["trials"]
            assert [trial["id"] for trial in found] == [ids[digit] for digit in expected], query
    query = {"sortBy": "SORT_BY_DURATION"}
    assert (await api.ok("GET", f"/api/v1/experiments/{experiment_id}/trials", params=query))["trials"]
    query = {"states": "STATE_COMPLETED"}
    page = await api.ok("GET", f"/api/v1/experiments/{experiment_id}/trials", params=query)
    assert ([trial["id"] for trial in page["trials"]], page["pagination"]["total"]) == ([one], 1)


async def test_checkpoints(api: Api) -> None:
    experiment_id = await api.create(config("ckpt", best="false"))
    first, second = await api.rows.trial(experiment_id), await api.rows.trial(experiment_id)
    await api.rows.metric(first, 10, "validation", {"loss": 1.0, "acc": 5})
    await api.rows.metric(first, 10, "training", {"loss": 9})
    await api.rows.metric(first, 20, "validation", {"loss": 3.0, "acc": 1})
    await api.rows.metric(second, 10, "validation", {"loss": "NaN"})
    a = await api.rows.checkpoint(experiment_id, first, 10)
    b = await api.rows.checkpoint(experiment_id, first, 20, state="DELETED", storage_id=4, allocation_id="x.1")
    c = await api.rows.checkpoint(experiment_id, second, 10, report_time=START)
    d = await api.rows.checkpoint(experiment_id, second, 30)
    names = {a: "a", b: "b", c: "c", d: "d"}

    async def order(path: str, **query: Any) -> str:
        found = (await api.ok("GET", path, params=query))["checkpoints"]
        return "".join(names[checkpoint["uuid"]] for checkpoint in found)

    path = f"/api/v1/experiments/{experiment_id}/checkpoints"
    assert await order(path) == "abcd"
    assert await order(path, sortByAttr="SORT_BY_SEARCHER_METRIC") == "bacd"
    assert await order(path, sortByAttr="SORT_BY_SEARCHER_METRIC", orderBy="ORDER_BY_ASC") == "abcd"
    assert await order(path, sortByAttr="SORT_BY_END_TIME") == "cabd"
    assert await order(path, sortByAttr="SORT_BY_BATCH_NUMBER", orderBy="ORDER_BY_DESC") == "dbca"
    assert await order(path, sortByMetric="acc", orderBy="ORDER_BY_DESC") == "abcd"
    assert await order(path, sortByMetric="acc", limit=1) == "b"
    assert await order(path, states=["STATE_COMPLETED"], offset=-1) == "d"
    assert await order(f"/api/v1/trials/{second}/checkpoints", sortByAttr="SORT_BY_SEARCHER_METRIC") == "cd"
    await api.refused(400, "GET", path, params={"offset": 9})

    one = (await api.ok("GET", f"/api/v1/checkpoints/{a}"))["checkpoint"]
    training = one["training"]
    assert (training["trialId"], training["experimentId"], training["searcherMetric"]) == (first, experiment_id, 1)
    assert training["validationMetrics"]["avgMetrics"] == {"loss": 1, "acc": 5}
    assert training["trainingMetrics"]["avgMetrics"] == {"loss": 9}
    assert training["experimentConfig"]["checkpoint_storage"]["host_path"] == "/checkpoints"
    assert one["state"] == "STATE_COMPLETED"
    assert "storageId" not in one
    other = (await api.ok("GET", f"/api/v1/checkpoints/{b}"))["checkpoint"]
    assert (other["storageId"], other["allocationId"], other["state"]) == (4, "x.1", "STATE_DELETED")
    nan = (await api.ok("GET", f"/api/v1/checkpoints/{c}"))["checkpoint"]["training"]
    assert nan["searcherMetric"] == "NaN"
    unvalidated = (await api.ok("GET", f"/api/v1/checkpoints/{d}"))["checkpoint"]["training"]
    assert unvalidated["searcherMetric"] is None
    for path in ("checkpoints/none", "trials/999999/checkpoints", "experiments/999999/checkpoints"):
        await api.refused(404, "GET", f"/api/v1/{path}")

    history = (await api.ok("GET", f"/api/v1/experiments/{experiment_id}/validation-history"))["validationHistory"]
    assert [(entry["trialId"], entry["searcherMetric"]) for entry in history] == [(first, 1), (first, 3)]


async def test_download_of_a_checkpoint(api: Api) -> None:
    experiment_id = await api.create()
    trial_id = await api.rows.trial(experiment_id)
    uuid = await api.rows.checkpoint(experiment_id, trial_id, 10)
    directory = api.files / "kept" / uuid
    (directory / "code").mkdir(parents=True)
    (directory / "code" / "weights").write_bytes(bytes(3_000_000))

    answer = await api.client.get(f"/checkpoints/{uuid}", headers={"Accept": "application/gzip"})
    assert (answer.headers["content-type"], answer.headers.get("content-encoding")) == ("application/gzip", None)
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(answer.content))) as files:
        assert files.getnames() == ["code", "code/weights"]
    plain = await api.client.get(f"/checkpoints/{uuid}", headers={"Accept": "*/*"})
    with tarfile.open(fileobj=io.BytesIO(plain.content)) as files:
        assert files.getmember("code/weights").size == 3_000_000
    zipped = await api.client.get(f"/checkpoints/{uuid}", headers={"Accept": "application/zip"})
    assert zipfile.ZipFile(io.BytesIO(zipped.content)).namelist() == ["code/", "code/weights"]

    other = await api.client.get(f"/checkpoints/{uuid}", headers={"Accept": "text/html"})
    assert (other.status_code, list(other.json())) == (415, ["message"])
    assert await api.refused(404, "GET", "/checkpoints/none") == "checkpoint 'none' not found"
    nobody = f"http://127.0.0.1:{free_port()}"
    keys = {"access_key": "k", "secret_key": "s"}
    elsewhere = await api.rows.storage({"type": "s3", "bucket": "b", "endpoint_url": nobody, **keys})
    remote = await api.rows.checkpoint(experiment_id, trial_id, 20, storage_id=elsewhere)
    message = await api.refused(503, "GET", f"/checkpoints/{remote}")
    assert message == f"checkpoint storage s3://b at {nobody} does not answer"
    unusable = await api.rows.storage({"type": "s3", "bucket": "b", "access_key": "k"})
    remote = await api.rows.checkpoint(experiment_id, trial_id, 25, storage_id=unusable)
    assert "access_key and secret_key" in await api.refused(400, "GET", f"/checkpoints/{remote}")
    missing = await api.rows.checkpoint(experiment_id, trial_id, 30)
    await api.refused(404, "GET", f"/checkpoints/{missing}")


async def test_model_definition(api: Api) -> None:
    content = base64.b64encode(b"print(1)").decode()
    files = [
        {"path": "src", "type": 53, "mode": 0o40755},
        {"path": "src/train.py", "type": 48, "content": content, "mtime": "1700000000"},
    ]
    experiment_id = await api.create(CONFIG.replace("digits", "my digits/1"), modelDefinition=files)
    path = f"/api/v1/experiments/{experiment_id}"
    (source,) = (await api.ok("GET", f"{path}/file_tree"))["files"]
    (train,) = source["files"]
    assert (source["isDir"], train["path"], train["contentLength"]) == (True, "src/train.py", 8)
    assert train["modifiedTime"] == "2023-11-14T22:13:20Z"
    assert (await api.ok("POST", f"{path}/file", json={"path": "src/train.py"}))["file"] == content
    assert await api.refused(404, "POST", f"{path}/file", json={"path": "x"}) == "file 'x' not found"
    await api.refused(404, "GET", "/api/v1/experiments/999999/model_def")

    raw = await api.client.get(f"/experiments/{experiment_id}/model_def")
    assert raw.headers["content-disposition"].endswith(f"exp{experiment_id}_my_digits1_model_def.tar.gz")
    with tarfile.open(fileobj=io.BytesIO(raw.content)) as archive:
        assert archive.getnames() == ["src", "src/train.py"]
    single = await api.client.get(f"/experiments/{experiment_id}/file/download", params={"path": "src/train.py"})
    assert single.content == b"print(1)"


async def test_labels_in_use(api: Api, project: int) -> None:
    for labels in ("[b, a]", "[b]", "[c, b]", "[]"):
        await api.create(config("x", labels=labels), projectId=project)
    answer = await api.ok("GET", "/api/v1/experiment/labels", params={"projectId": project})
    assert answer == {"labels": ["b", "a", "c"]}
    assert "b" in (await api.ok("GET", "/api/v1/experiment/labels"))["labels"]


async def test_search_preview(api: Api) -> None:
    searcher = {"name": "adaptive_asha", "metric": "loss", "max_trials": 10, "max_time": 900, "time_metric": "batches"}
    body = {"config": {"searcher": {**searcher, "divisor": 3, "max_rungs": 10, "max_concurrent_trials": 5}}}
    summary = (await api.ok("POST", "/api/v1/preview-hp-search", json=body))["summary"]
    assert [(trial["unit"]["value"], trial["count"]) for trial in summary["trials"]] == [(100, 5), (300, 3), (900, 2)]
    assert (summary["config"]["mode"], summary["trials"][0]["unit"]["name"]) == ("standard", "batches")
    single = {"config": {"searcher": {"name": "single", "metric": "loss"}}}
    trials = (await api.ok("POST", "/api/v1/preview-hp-search", json=single))["summary"]["trials"]
    assert trials == [{"count": 1, "unit": {"maxLength": True}}]
    for bad in ({}, {"config": {"searcher": {"name": "custom", "metric": "x"}}}, {"config": {"nonsense": 1}}):
        await api.refused(400, "POST", "/api/v1/preview-hp-search", json=bad)
