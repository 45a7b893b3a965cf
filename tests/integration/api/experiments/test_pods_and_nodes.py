"""What users' pods may ask of nodes, by the setting of the administrator: experiments and tasks alike."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from msgspec import structs
from sqlalchemy import select

from libs.cluster.config import ResourceManagerConfig, SecurityConfig, TaskContainerDefaults
from libs.db.tables.cluster import outbox
from libs.events import subjects
from libs.events.logs import LogBatch
from libs.podspec import PodSpecMode
from tests.integration.api.experiments.conftest import CLUSTER, Api, serving
from tests.integration.api.experiments.det import start_det

pytestmark = pytest.mark.asyncio(loop_scope="module")

Object = dict[str, Any]
Serve = Callable[[PodSpecMode], AbstractAsyncContextManager[str]]

TRAIN = {"entrypoint": "run", "searcher": {"name": "single", "metric": "loss"}}
ROOT_OF_THE_NODE = {"spec": {"hostPID": True, "volumes": [{"name": "v", "hostPath": {"path": "/"}}]}}
ADMINISTRATORS = {
    "spec": {
        "containers": [
            {
                "name": "determined-container",
                "volumeMounts": [{"name": "sets", "mountPath": "/sets", "readOnly": True}],
            },
            {"name": "audit", "image": "audit:1"},
        ],
        "volumes": [{"name": "sets", "persistentVolumeClaim": {"claimName": "sets"}}],
    }
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def serve(api: Api) -> AsyncIterator[Serve]:
    @asynccontextmanager
    async def served(mode: PodSpecMode) -> AsyncIterator[str]:
        cluster = structs.replace(
            CLUSTER,
            resource_manager=ResourceManagerConfig(type="kubernetes", max_slots_per_pod=1),
            checkpoint_storage={"type": "shared_fs", "host_path": "/checkpoints"},
            task_container_defaults=TaskContainerDefaults(cpu_pod_spec=ADMINISTRATORS, gpu_pod_spec=ADMINISTRATORS),
            security=SecurityConfig(pod_spec=mode, host_paths=("/data",)),
        )
        async with serving(replace(api.app, cluster=cluster)) as url:
            yield url

    yield served


def experiment(**config: Any) -> Object:
    return {"config": json.dumps({**TRAIN, **config})}


async def test_what_leads_out_of_a_container_is_refused_everywhere(api: Api, serve: Serve) -> None:
    pod = {"environment": {"pod_spec": ROOT_OF_THE_NODE}}
    async with serve("baseline") as url:
        await api.ok("PUT", f"{url}/api/v1/templates/out", json={"config": pod})
        for path, body in (
            ("experiments", experiment(**pod)),
            ("experiments", {**experiment(), "template": "out"}),
            ("commands", {"config": {**pod, "entrypoint": ["true"]}}),
            ("shells", {"config": {}, "templateName": "out"}),
            ("generic-tasks", {"config": json.dumps({**pod, "entrypoint": ["true"]})}),
        ):
            text = await api.refused(400, "POST", f"{url}/api/v1/{path}", json=body)
            assert "environment.pod_spec.spec.hostPID" in text
            assert "environment.pod_spec.spec.volumes[0].hostPath mounts / of the node" in text


async def test_directories_of_nodes_have_to_be_allowed(api: Api, serve: Serve) -> None:
    async with serve("baseline") as url:
        for config, path in (
            ({"bind_mounts": [{"host_path": "/etc", "container_path": "etc"}]}, "bind_mounts[0].host_path"),
            ({"checkpoint_storage": {"type": "shared_fs", "host_path": "/home"}}, "checkpoint_storage.host_path"),
            ({"environment": {"add_capabilities": ["SYS_ADMIN"]}}, "environment.add_capabilities"),
        ):
            assert path in await api.refused(400, "POST", f"{url}/api/v1/experiments", json=experiment(**config))
        allowed = experiment(
            bind_mounts=[{"host_path": "/data/sets", "container_path": "sets"}],
            checkpoint_storage={"type": "shared_fs", "host_path": "/checkpoints"},
        )
        await api.ok("POST", f"{url}/api/v1/experiments", json=allowed)


async def test_an_image_that_cannot_be_one_is_refused_before_any_node_tries(api: Api, serve: Serve) -> None:
    wrong = {"environment": {"image": "My Image:latest"}}
    async with serve("free") as url:
        await api.ok("PUT", f"{url}/api/v1/templates/no-image", json={"config": {"environment": {"image": "A:b:c"}}})
        for path, body, name in (
            ("experiments", experiment(**wrong), "My Image:latest"),
            ("experiments", {**experiment(), "template": "no-image"}, "A:b:c"),
            ("commands", {"config": {**wrong, "entrypoint": ["true"]}}, "My Image:latest"),
            ("shells", {"config": {}, "templateName": "no-image"}, "A:b:c"),
            ("generic-tasks", {"config": json.dumps({**wrong, "entrypoint": ["true"]})}, "My Image:latest"),
        ):
            text = await api.refused(400, "POST", f"{url}/api/v1/{path}", json=body)
            assert f"environment.image.cpu: '{name}' is no name of an image" in text
        right = {
            "environment": {"image": {"cpu": "registry.example.com:5000/Team/x", "cuda": "a/b_c:1@sha256:" + "0" * 64}}
        }
        assert "Team" in await api.refused(400, "POST", f"{url}/api/v1/experiments", json=experiment(**right))
        right["environment"]["image"]["cpu"] = "registry.example.com:5000/team/x"
        await api.ok("POST", f"{url}/api/v1/experiments", json=experiment(**right))


async def test_what_an_administrator_adds_to_pods_is_used_as_it_is(api: Api, serve: Serve) -> None:
    writable = {"name": "mine", "volumeMounts": [{"name": "sets", "mountPath": "/m"}]}
    pods = (
        ({"spec": {"containers": [{"name": "audit", "image": "mine"}]}}, "spec.containers[audit] changes a container"),
        ({"spec": {"containers": [writable]}}, "spec.containers[mine].volumeMounts[/m] mounts more of the volume sets"),
    )
    async with serve("baseline") as url:
        for pod, words in pods:
            config = {"environment": {"pod_spec": pod}}
            for path, body in (
                ("experiments", experiment(**config)),
                ("commands", {"config": {**config, "entrypoint": ["true"]}}),
                ("generic-tasks", {"config": json.dumps({**config, "entrypoint": ["true"]})}),
            ):
                text = await api.refused(400, "POST", f"{url}/api/v1/{path}", json=body)
                assert f"environment.pod_spec.{words}" in text
                assert "security.pod_fields can allow spec.containers" in text
        # What was created has the defaults in it, and so has a copy of it.
        created = await api.ok("POST", f"{url}/api/v1/experiments", json=experiment())
        assert created["config"]["environment"]["pod_spec"] == ADMINISTRATORS
        await api.ok("POST", f"{url}/api/v1/experiments", json=experiment(environment={"pod_spec": ADMINISTRATORS}))


async def test_the_client_shows_which_field_and_which_setting(serve: Serve, tmp_path: Path) -> None:
    config, sidecar = tmp_path / "config.yaml", {"name": "audit", "command": ["true"]}
    part = {"name": "mine", "volumeMounts": [{"name": "sets", "mountPath": "/m", "readOnly": True, "subPath": "a"}]}
    async with serve("baseline") as url, start_det(url, tmp_path) as det:
        for container, code in ((sidecar, 1), (part, 0)):
            config.write_text(json.dumps({"environment": {"pod_spec": {"spec": {"containers": [container]}}}}))
            ran = await det("cmd", "run", "--detach", "--config-file", str(config), "true", code=code)
            assert ("spec.containers[audit] changes a container of the administrator" in ran.err) == bool(code)
            assert ("security.pod_fields can allow spec.containers" in ran.err) == bool(code)


@pytest.mark.parametrize("mode", ["warn", "free"])
async def test_an_administrator_may_let_it_be(api: Api, serve: Serve, mode: PodSpecMode) -> None:
    async with serve(mode) as url:
        body = experiment(environment={"pod_spec": ROOT_OF_THE_NODE})
        await api.ok("POST", f"{url}/api/v1/experiments", json=body)
        config = {"environment": {"pod_spec": ROOT_OF_THE_NODE}, "entrypoint": ["true"]}
        command = await api.ok("POST", f"{url}/api/v1/commands", json={"config": config})
        task = await api.ok("POST", f"{url}/api/v1/generic-tasks", json={"config": json.dumps(config)})
    for ident in (command["command"]["id"], task["taskId"]):
        said = [line for line in await lines_of(api, ident) if "baseline would refuse" in line]
        assert len(said) == (2 if mode == "warn" else 0), "one for each field"
        assert all("security.pod_fields" in line or "security.host_paths" in line for line in said)


async def lines_of(api: Api, task: str) -> list[str]:
    """Lines that the api adds to the log of a task: nobody relays them in these tests."""
    async with api.app.db.read() as connection:
        query = select(outbox.c.payload).where(outbox.c.subject == subjects.logs(task))
        batches = [msgspec.msgpack.decode(each, type=LogBatch) for each in (await connection.execute(query)).scalars()]
    return [line.log.decode() for batch in batches for line in batch.lines]


async def test_restricted_pods_do_not_run_as_root(api: Api, serve: Serve) -> None:
    pod = {"spec": {"securityContext": {"runAsUser": 0}}}
    async with serve("restricted") as url:
        body = experiment(environment={"pod_spec": pod})
        assert "runs as root" in await api.refused(400, "POST", f"{url}/api/v1/experiments", json=body)


async def test_on_one_machine_there_are_no_pods_to_judge(api: Api) -> None:
    mounts = [{"host_path": "/etc", "container_path": "etc"}]
    cluster = structs.replace(CLUSTER, security=SecurityConfig(pod_spec="restricted"))
    async with serving(replace(api.app, cluster=cluster)) as url:
        await api.ok("POST", f"{url}/api/v1/experiments", json=experiment(bind_mounts=mounts))
