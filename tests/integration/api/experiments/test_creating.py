"""POST /api/v1/experiments: what is stored, what is refused, and that nothing is ever half done."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import attrgetter

import pytest
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from msgspec import structs

from libs.events import subjects
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from services.api.app import App
from services.api.contexts import pack
from tests.integration.api.experiments.conftest import CONFIG, Api, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

MINIMAL = "{entrypoint: run, searcher: {name: single, metric: loss}"


@contextmanager
def capacity(app: App, *slots: int, backend: str = "process") -> Iterator[None]:
    """The pool ``default`` with a node per number of slots, for a moment."""
    nodes = tuple(
        NodeCapacity(name=f"node-{number}", devices=tuple(Device(id=f"{device:03}") for device in range(count)))
        for number, count in enumerate(slots)
    )
    key = subjects.capacity_key("default")
    app.capacity._by_key[key] = PoolCapacity(pool="default", backend=backend, nodes=nodes)
    try:
        yield
    finally:
        del app.capacity._by_key[key]


async def test_created_experiment_has_everything_the_scheduler_needs(api: Api) -> None:
    created = await api.ok("POST", "/api/v1/experiments", json={"config": CONFIG, "activate": True})
    experiment, config = created["experiment"], created["config"]
    row = await api.rows.experiment(experiment["id"])
    job = await api.rows.job(row.job_id)

    assert (experiment["state"], row.state) == ("STATE_QUEUED", "ACTIVE")
    assert experiment["config"] == config
    assert row.config["resources"]["resource_pool"] == "default"
    assert config["hyperparameters"]["layers"] == {"type": "const", "val": 2}
    assert config["checkpoint_storage"]["host_path"] == "/checkpoints"
    assert (job.job_type, job.pool, job.priority, job.workspace_id) == ("EXPERIMENT", "default", 42, 1)
    assert experiment["jobId"] == row.job_id
    assert experiment["originalConfig"] == CONFIG
    listed = (await api.ok("GET", f"/api/v1/experiments?experimentIdFilter.incl={experiment['id']}"))["experiments"]
    assert [each["originalConfig"] for each in listed] == [""], "lists leave it out"
    assert created["warnings"] == []
    load_ssh_private_key(row.ssh_private_key.encode(), None)
    assert row.ssh_public_key.startswith("ssh-ed25519 ")
    trials = await api.rows.trials_of(row.id)
    announced = await api.rows.announced()
    begun = announced.index(subjects.event("experiment", row.id, "created"))
    assert announced[begun:] == [
        subjects.event("experiment", row.id, "created"),
        subjects.event("experiment", row.id, "state"),
        subjects.event("job", row.job_id, "submitted"),
        *(
            event
            for trial in trials
            for event in (
                subjects.event("task", f"{row.id}.{trial.request_id}", "created"),
                subjects.event("trial", trial.id, "created"),
            )
        ),
    ]


async def test_without_activate_it_waits(api: Api) -> None:
    experiment_id = await api.create()
    assert (await api.rows.experiment(experiment_id)).state == "PAUSED"


async def test_validating_only_stores_nothing(api: Api) -> None:
    before = await api.rows.announced()
    answer = await api.ok("POST", "/api/v1/experiments", json={"config": CONFIG, "validateOnly": True})
    assert (answer["experiment"]["id"], answer["config"], answer["experiment"]["config"]) == (0, None, None)
    assert await api.rows.announced() == before
    bad = {"config": "{}", "validateOnly": True}
    assert "entrypoint" in await api.refused(400, "POST", "/api/v1/experiments", json=bad)


@dataclass
class Bad:
    name: str
    config: str
    message: str
    status: int = 400


BAD = [
    Bad("broken YAML", "a: [1", "invalid experiment configuration: invalid YAML"),
    Bad("nothing at all", "", "invalid experiment configuration"),
    Bad("unknown field", MINIMAL + ", speed: 3}", 'additionalProperties "speed" not allowed'),
    Bad("slots", MINIMAL + ", resources: {slots: 1}}", 'additionalProperties "slots" not allowed'),
    Bad("no entrypoint", "{searcher: {name: single, metric: loss}}", "managed experiments require entrypoint"),
    Bad("no searcher", "{entrypoint: run}", "searcher is a required property"),
    Bad(
        "unknown pool",
        MINIMAL + ", resources: {resource_pool: nowhere}}",
        "invalid resource configuration: resource pool nowhere does not exist",
    ),
    Bad("removed searcher", "{entrypoint: a, searcher: {name: adaptive_simple, metric: x, max_trials: 1}}", "removed"),
    Bad("only a workspace", MINIMAL + ", workspace: w}", "workspace and project must both be included"),
    Bad("unknown project", MINIMAL + ", workspace: w, project: p}", "workspace/project 'w/p' not found", status=404),
    Bad(
        "trial without checkpoint",
        "{entrypoint: a, searcher: {name: single, metric: x, source_trial_id: 999999}}",
        "failed to create experiment: no checkpoint found for source trial 999999",
    ),
    Bad(
        "unknown checkpoint",
        "{entrypoint: a, searcher: {name: single, metric: x, source_checkpoint_uuid: none}}",
        "no checkpoint found with uuid 'none'",
    ),
]


@pytest.mark.parametrize("case", BAD, ids=attrgetter("name"))
async def test_mistakes_are_explained(api: Api, case: Bad) -> None:
    message = await api.refused(case.status, "POST", "/api/v1/experiments", json={"config": case.config})
    assert case.message in message


async def test_more_mistakes_are_explained(api: Api) -> None:
    async def refuse(status: int, **fields: object) -> str:
        return await api.refused(status, "POST", "/api/v1/experiments", json={"config": CONFIG, **fields})

    assert await refuse(404, template="x") == "template 'x' not found"
    assert await refuse(404, parentId=999_999) == "experiment '999999' not found"
    assert await refuse(404, projectId=999_999) == "project '999999' not found"
    assert "not a path inside" in await refuse(400, modelDefinition=[{"path": "../x", "type": 48}])


SLOTS = [
    # slots on each node, slots asked for, single node, is it possible
    ((4,), 4, False, True),
    ((4,), 5, False, False),
    ((4, 4), 8, False, False),
    ((), 1, False, False),
    ((4,), 0, False, True),
]


@pytest.mark.parametrize(("nodes", "slots", "single", "possible"), SLOTS)
async def test_what_can_never_run_is_refused(
    api: Api, nodes: tuple[int, ...], slots: int, single: bool, possible: bool
) -> None:
    body = {"config": MINIMAL + f", resources: {{slots_per_trial: {slots}}}}}", "validateOnly": True}
    with capacity(api.app, *nodes):
        if possible:
            await api.ok("POST", "/api/v1/experiments", json=body)
        else:
            message = await api.refused(400, "POST", "/api/v1/experiments", json=body)
            assert message == "invalid resource configuration: slots requested exceeds cluster capacity"


async def test_lenient_cluster_accepts_what_exceeds_it_with_a_warning(api: Api) -> None:
    lenient = replace(api.app, cluster=structs.replace(api.app.cluster, launch_error=False))
    body = {"config": MINIMAL + ", resources: {slots_per_trial: 3}}"}
    async with serving(lenient) as url:
        with capacity(lenient, 2):
            answer = await api.ok("POST", f"{url}/api/v1/experiments", json=body)
    assert answer["warnings"] == ["LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"]


async def test_project_and_workspace_decide_where_it_goes(api: Api) -> None:
    storage = {"type": "s3", "bucket": "theirs"}
    project_id = await api.rows.project("Team", checkpoint_storage=storage, default_compute_pool="other")
    named = await api.create(MINIMAL + ", workspace: team, project: Team}")
    row = await api.rows.experiment(named)
    assert row.project_id == project_id
    assert row.config["checkpoint_storage"]["bucket"] == "theirs"
    assert row.config["resources"]["resource_pool"] == "other"

    given = await api.create(projectId=project_id)
    assert (await api.rows.experiment(given)).project_id == project_id

    await api.rows.set_project(project_id, archived=True)
    body = {"config": CONFIG, "projectId": project_id}
    message = await api.refused(400, "POST", "/api/v1/experiments", json=body)
    assert message == f"project ({project_id}) is archived and cannot add new experiments"
    fork = {"config": CONFIG, "parentId": given}
    message = await api.refused(400, "POST", "/api/v1/experiments", json=fork)
    assert message == "forking an experiment in an archived workspace/project"


async def test_fork_takes_over_the_files_of_its_parent(api: Api) -> None:
    content = base64.b64encode(b"print(1)").decode()
    parent = await api.create(modelDefinition=[{"path": "train.py", "type": 48, "content": content, "mode": 33188}])
    ignored = [{"path": "other.py", "type": 48, "content": content}]
    fork = await api.create(parentId=parent, modelDefinition=ignored)
    experiment = (await api.ok("GET", f"/api/v1/experiments/{fork}"))["experiment"]
    archive = (await api.ok("GET", f"/api/v1/experiments/{fork}/model_def"))["b64Tgz"]
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(archive))) as files:
        assert files.getnames() == ["train.py"]
        assert files.getmember("train.py").mode == 0o644
    assert experiment["forkedFrom"] == parent
    assert experiment["modelDefinitionSize"] == len(base64.b64decode(archive))


async def test_warm_start_is_settled_when_the_experiment_is_created(api: Api) -> None:
    source = await api.create()
    trial_id = await api.rows.trial(source)
    await api.rows.checkpoint(source, trial_id, 10)
    latest = await api.rows.checkpoint(source, trial_id, 30)
    gone = await api.rows.checkpoint(source, trial_id, 40, state="DELETED")

    searcher = f"{{name: single, metric: x, source_trial_id: {trial_id}, source_checkpoint_uuid: other}}"
    created = await api.create(f"{{entrypoint: a, searcher: {searcher}}}")
    stored = (await api.rows.experiment(created)).config["searcher"]
    assert (stored["source_trial_id"], stored["source_checkpoint_uuid"]) == (trial_id, latest)

    config = f"{{entrypoint: a, searcher: {{name: single, metric: x, source_checkpoint_uuid: {gone}}}}}"
    message = await api.refused(400, "POST", "/api/v1/experiments", json={"config": config})
    assert "is in state DELETED" in message


async def test_secrets_are_never_shown(api: Api) -> None:
    experiment_id = await api.create(MINIMAL + ", data: {secrets: {key: hunter2}, url: x}}")
    for path in (f"/api/v1/experiments/{experiment_id}", "/api/v1/experiments?limit=-1"):
        assert "hunter2" not in (await api.client.get(path)).text
    experiment = (await api.ok("GET", f"/api/v1/experiments/{experiment_id}"))["experiment"]
    assert experiment["config"]["data"] == {"secrets": {"key": "********"}, "url": "x"}
    assert "********" in experiment["originalConfig"]
    assert (await api.rows.experiment(experiment_id)).config["data"]["secrets"] == {"key": "hunter2"}


async def test_a_configuration_that_was_shown_masked_is_refused_when_it_comes_back(api: Api) -> None:
    experiment_id = await api.create(MINIMAL + ", data: {secrets: {key: hunter2}}}")
    shown = (await api.ok("GET", f"/api/v1/experiments/{experiment_id}"))["experiment"]
    for body in ({"config": json.dumps(shown["config"])}, {"config": shown["originalConfig"]}):
        refusal = await api.refused(400, "POST", "/api/v1/experiments", json={**body, "parentId": experiment_id})
        assert "<config>.data.secrets.key: ******** hides a secret" in refusal


async def test_credentials_of_the_cluster_are_read_by_the_owner_of_an_experiment_alone(api: Api) -> None:
    experiment_id = await api.create()
    trial_id = await api.rows.trial(experiment_id)
    uuid = await api.rows.checkpoint(experiment_id, trial_id, 1)
    config = (await api.rows.experiment(experiment_id)).config
    config["checkpoint_storage"] = {"type": "s3", "bucket": "b", "access_key": "AKIA", "secret_key": "hunter2"}
    config["environment"]["registry_auth"] = {"username": "u", "password": "hunter2"}
    text = "checkpoint_storage: {secret_key: hunter2}"
    await api.rows.set_experiment(experiment_id, config=config, original_config=text)
    masked = {"type": "s3", "bucket": "b", "access_key": "********", "secret_key": "********"}
    for method, path in (
        ("GET", f"/api/v1/experiments/{experiment_id}"),
        ("GET", "/api/v1/experiments?limit=-1"),
        ("PATCH", f"/api/v1/experiments/{experiment_id}"),
        ("GET", f"/api/v1/checkpoints/{uuid}"),
        ("GET", f"/api/v1/trials/{trial_id}/checkpoints"),
        ("GET", f"/api/v1/experiments/{experiment_id}/checkpoints"),
        ("POST", f"/api/v1/checkpoints/{uuid}/metadata"),
    ):
        body = {"checkpoint": {"metadata": {}}} if method == "POST" else {}
        to_owner = await api.client.request(method, path, json=body)
        to_other = await api.admin.request(method, path, json=body)
        assert (to_owner.status_code, to_other.status_code) == (200, 200)
        assert "hunter2" in to_owner.text, path
        assert "hunter2" not in to_other.text, path
        assert "AKIA" not in to_other.text, path
    shown = (await api.admin.get(f"/api/v1/checkpoints/{uuid}")).json()["checkpoint"]["training"]["experimentConfig"]
    assert shown["checkpoint_storage"] == masked
    assert shown["environment"]["registry_auth"] == {"username": "u", "password": "********"}


async def test_large_context_is_taken(api: Api) -> None:
    mebibyte = base64.b64encode(bytes(2**20)).decode()
    files = [{"path": f"{number}.bin", "type": 48, "content": mebibyte} for number in range(94)]
    experiment_id = await api.create(modelDefinition=files)
    tree = await api.ok("GET", f"/api/v1/experiments/{experiment_id}/file_tree")
    assert sum(node["contentLength"] for node in tree["files"]) == 94 * 2**20


async def test_context_larger_than_that_is_refused(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack, "MAX_CONTEXT_BYTES", 2)
    body = {"config": CONFIG, "modelDefinition": [{"path": "x", "type": 48, "content": "AAAA"}]}
    assert "too large" in await api.refused(400, "POST", "/api/v1/experiments", json=body)
