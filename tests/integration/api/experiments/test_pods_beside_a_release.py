"""Pods of users in the namespace of the release, and elsewhere: experiments, tasks and templates alike."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from msgspec import structs
from sqlalchemy import insert, select, update

from libs.cluster.config import PoolConfig, ResourceManagerConfig, SecurityConfig, TaskContainerDefaults
from libs.db.tables.experiments import experiments
from libs.db.tables.namespaces import workspace_namespace_bindings
from libs.db.tables.tasks import tasks
from libs.events.orders import UsersPod
from libs.tasks.stored import from_document
from libs.tasks.users_pods import from_column
from tests.integration.api.experiments.conftest import CLUSTER, Api, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

Object = dict[str, Any]

TRAIN = {"entrypoint": "run", "searcher": {"name": "single", "metric": "loss"}}
SECRET = {"spec": {"volumes": [{"name": "v", "secret": {"secretName": "resolute-generated-det"}}]}}
ADMINISTRATORS = {"spec": {"imagePullSecrets": [{"name": "of-the-cluster"}], "enableServiceLinks": True}}
BESIDE = "refers to Secret/resolute-generated-det in the namespace det"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url(api: Api) -> AsyncIterator[str]:
    cluster = structs.replace(
        CLUSTER,
        resource_manager=ResourceManagerConfig(type="kubernetes", default_namespace="det", max_slots_per_pod=1),
        resource_pools=(PoolConfig(pool_name="default"), PoolConfig(pool_name="apart", kubernetes_namespace="tasks")),
        task_container_defaults=TaskContainerDefaults(cpu_pod_spec=ADMINISTRATORS, gpu_pod_spec=ADMINISTRATORS),
        security=SecurityConfig(release_namespace="det", references=("PersistentVolumeClaim/data-*",)),
    )
    async with serving(replace(api.app, cluster=cluster)) as found:
        yield found


def with_pod(pod: Object | None, pool: str = "default", **fields: Any) -> Object:
    return {**fields, "resources": {"resource_pool": pool}, "environment": {"pod_spec": pod}}


async def refused_experiment(api: Api, url: str, config: Object, **body: Any) -> str:
    return await api.refused(
        400, "POST", f"{url}/api/v1/experiments", json={"config": json.dumps({**TRAIN, **config}), **body}
    )


async def create(api: Api, url: str, config: Object, **body: Any) -> Object:
    found: Object = await api.ok(
        "POST", f"{url}/api/v1/experiments", json={"config": json.dumps({**TRAIN, **config}), **body}
    )
    return found


async def test_an_experiment_may_not_refer_to_what_is_the_releases(api: Api, url: str) -> None:
    text = await refused_experiment(api, url, with_pod(SECRET))
    assert text.startswith("environment.pod_spec.spec.volumes[0].secret.secretName")
    assert BESIDE in text
    assert "security.references" in text


async def test_a_template_hides_nothing(api: Api, url: str) -> None:
    await api.ok("PUT", f"{url}/api/v1/templates/reaching", json={"config": with_pod(SECRET)})
    assert BESIDE in await refused_experiment(api, url, {}, template="reaching")
    assert BESIDE in await api.refused(
        400, "POST", f"{url}/api/v1/commands", json={"config": {"entrypoint": ["true"]}, "templateName": "reaching"}
    )


@pytest.mark.parametrize("kind", ["commands", "notebooks", "shells"])
async def test_other_tasks_may_not_either(api: Api, url: str, kind: str) -> None:
    config = with_pod(SECRET, entrypoint=["true"]) if kind == "commands" else with_pod(SECRET)
    assert BESIDE in await api.refused(400, "POST", f"{url}/api/v1/{kind}", json={"config": config})


async def test_a_generic_task_may_not_either(api: Api, url: str) -> None:
    config = json.dumps(with_pod(SECRET, entrypoint=["true"]))
    assert BESIDE in await api.refused(400, "POST", f"{url}/api/v1/generic-tasks", json={"config": config})


async def test_what_is_continued_may_not_take_it_on(api: Api, url: str) -> None:
    created = (await create(api, url, with_pod(None)))["experiment"]["id"]
    async with api.app.db.transaction() as connection:
        await connection.execute(update(experiments).where(experiments.c.id == created).values(state="CANCELED"))
    body = {"id": created, "overrideConfig": json.dumps({"environment": {"pod_spec": SECRET}})}
    assert BESIDE in await api.refused(400, "POST", f"{url}/api/v1/experiments/continue", json=body)


async def test_defaults_of_administrators_and_allowed_objects_are_taken(api: Api, url: str) -> None:
    assert (await create(api, url, with_pod(None)))["config"]["environment"]["pod_spec"] == ADMINISTRATORS
    claim = {"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data-1"}}]}}
    assert (await create(api, url, with_pod(claim)))["config"]["environment"]["pod_spec"]["spec"]["volumes"]


async def test_elsewhere_only_what_is_made_for_tasks_is_refused(api: Api, url: str) -> None:
    await create(api, url, with_pod(SECRET, "apart"))
    made = {"spec": {"volumes": [{"name": "v", "secret": {"secretName": "det-0a1b2c3d-exp-1-trial-1-attempt-1"}}]}}
    assert "named like what is made for tasks" in await refused_experiment(api, url, with_pod(made, "apart"))


async def test_the_namespace_of_the_workspace_counts(api: Api, url: str) -> None:
    body = {"name": "beside"}
    workspace = (await api.ok("POST", f"{url}/api/v1/workspaces", json=body))["workspace"]["id"]
    async with api.app.db.transaction() as connection:
        await connection.execute(
            insert(workspace_namespace_bindings).values(
                workspace_id=workspace, cluster_name="default", namespace="det", auto_created=False
            )
        )
    config = with_pod(SECRET, "apart", entrypoint=["true"])
    assert BESIDE in await api.refused(
        400, "POST", f"{url}/api/v1/commands", json={"config": config, "workspaceId": workspace}
    )


async def test_no_pod_joins_the_services_of_the_release(api: Api, url: str) -> None:
    for labels in ({"app": "determined-master-det"}, {"release": "det", "determined-system": "master"}):
        text = await refused_experiment(api, url, with_pod({"metadata": {"labels": labels}}, "apart"))
        assert text.count("security.pod_labels") == len(labels)
    await create(api, url, with_pod({"metadata": {"labels": {"team": "a"}}}))


async def test_tokens_and_service_links_are_for_administrators(api: Api, url: str) -> None:
    token = {"spec": {"automountServiceAccountToken": True}}
    assert "task_container_defaults" in await refused_experiment(api, url, with_pod(token))
    await create(api, url, with_pod({"spec": {"enableServiceLinks": True}}))


async def kept(api: Api, experiment: int) -> UsersPod | None:
    async with api.app.db.read() as connection:
        query = select(experiments.c.users_pod).where(experiments.c.id == experiment)
        return from_column((await connection.execute(query)).scalar_one())


async def kept_of_task(api: Api, task: str) -> UsersPod | None:
    async with api.app.db.read() as connection:
        spec = (await connection.execute(select(tasks.c.spec).where(tasks.c.task_id == task))).scalar_one()
    return from_document(spec).users_pod


async def test_what_users_wrote_is_kept_apart_from_what_administrators_set(api: Api, url: str) -> None:
    hosts = {"spec": {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}]}}
    await api.ok("PUT", f"{url}/api/v1/templates/hosts", json={"config": with_pod(hosts)})
    created = await create(api, url, with_pod({"spec": {"hostname": "h"}}), template="hosts")
    assert created["config"]["environment"]["pod_spec"]["spec"].keys() > ADMINISTRATORS["spec"].keys()
    experiment = created["experiment"]["id"]
    assert await kept(api, experiment) == UsersPod(pod={"spec": {**hosts["spec"], "hostname": "h"}})
    async with api.app.db.transaction() as connection:
        await connection.execute(update(experiments).where(experiments.c.id == experiment).values(state="CANCELED"))
    override = json.dumps({"environment": {"pod_spec": {"spec": {"hostname": "i"}}}})
    body = {"id": experiment, "overrideConfig": override}
    await api.ok("POST", f"{url}/api/v1/experiments/continue", json=body)
    assert await kept(api, experiment) == UsersPod(pod={"spec": {**hosts["spec"], "hostname": "i"}})


async def test_it_is_kept_of_other_tasks(api: Api, url: str) -> None:
    wanted = UsersPod(pod={"spec": {"hostname": "h"}})
    config = with_pod(wanted.pod, entrypoint=["true"])
    command = await api.ok("POST", f"{url}/api/v1/commands", json={"config": config})
    assert await kept_of_task(api, command["command"]["id"]) == wanted
    task = await api.ok("POST", f"{url}/api/v1/generic-tasks", json={"config": json.dumps(config)})
    assert await kept_of_task(api, task["taskId"]) == wanted
