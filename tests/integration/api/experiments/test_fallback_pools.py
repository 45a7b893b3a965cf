"""``resources.fallback_pools`` when work is submitted: what is stored of it, and what is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec import structs
from sqlalchemy import delete, insert, select, update

from libs.bus import CoreMessage
from libs.cluster.config import PoolConfig
from libs.db.tables.tasks import pool_offers, tasks
from libs.db.tables.workspaces import pool_bindings
from libs.events import subjects
from libs.events.requests.queue_checks import MOST, QueueAnswer, QueueAnswers, QueueCheck
from tests.harness.pages.blocks import blocks_of, document
from tests.integration.api.experiments.conftest import Api, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

OTHER = {
    "environment_variables": ["FROM=other"],
    "bind_mounts": [{"host_path": "/other", "container_path": "/data"}],
    "kubernetes": {"max_slots_per_pod": 2},
}
POOLS = (
    PoolConfig(pool_name="default"),
    PoolConfig(pool_name="other", task_container_defaults=OTHER, default_time_limit="1d", fallback_wait="5m"),
    PoolConfig(pool_name="limited", max_time_limit="2h"),
)
EXPERIMENT = "{entrypoint: a, searcher: {name: single, metric: loss}, resources: {slots_per_trial: 4, %s}}"
TASK = "{entrypoint: [a], resources: {slots: 2, is_single_node: false, %s}}"
FALLBACK = "fallback_pools: [other, {pool: limited, after: 90m}]"
NORMAL = [{"pool": "other", "after": 300}, {"pool": "limited", "after": 5400}]


@asynccontextmanager
async def _served(api: Api) -> AsyncIterator[str]:
    async with serving(replace(api.app, cluster=structs.replace(api.app.cluster, resource_pools=POOLS))) as url:
        yield url


async def test_an_experiment_keeps_what_is_different_in_each_pool(api: Api) -> None:
    async with _served(api) as url:
        created = await _create(api, url, FALLBACK)
    assert created["config"]["resources"]["fallback_pools"] == NORMAL
    assert created["config"]["resources"]["resource_pool"] == "default"
    assert created["config"]["environment"]["environment_variables"]["cpu"] == []
    own, other, limited = await _offers(api, created["experiment"]["jobId"])
    assert (own.pool, own.rank, own.num_pods, own.time_limit_s, own.changes) == ("default", 0, 1, None, {})
    assert (other.pool, other.after_s, other.num_pods, other.time_limit_s) == ("other", 300, 2, 86_400)
    assert other.changes["environment"]["environment_variables"]["cpu"] == ["FROM=other"]
    assert [mount["host_path"] for mount in other.changes["bind_mounts"]] == ["/other"]
    assert other.changes.keys() == {"environment", "bind_mounts"}
    assert (limited.pool, limited.after_s, limited.time_limit_s, limited.changes) == ("limited", 5400, 7200, {})


async def test_other_tasks_keep_it_in_their_specifications(api: Api) -> None:
    async with _served(api) as url:
        text = TASK % FALLBACK
        task = (await api.ok("POST", f"{url}/api/v1/generic-tasks", json={"config": text}))["taskId"]
        config = {"entrypoint": ["a"], "resources": {"slots": 1, "fallback_pools": ["other"]}}
        launched = await api.ok("POST", f"{url}/api/v1/commands", json={"config": config})
        plain = await api.ok("POST", f"{url}/api/v1/commands", json={"config": {"entrypoint": ["a"]}})
    assert launched["config"]["resources"]["fallback_pools"] == NORMAL[:1]
    assert "fallback_pools" not in plain["config"]["resources"]
    assert await _offers(api, plain["command"]["jobId"]) == []
    for ident, pods in ((task, 1), (launched["command"]["id"], 1)):
        _, other, *_ = await _offers(api, await _job(api, ident))
        assert (other.pool, other.num_pods) == ("other", pods)
        assert other.changes["environment"]["variables"][-1] == "FROM=other"
        assert [mount["host_path"] for mount in other.changes["bind_mounts"]] == ["/other"]


async def test_credentials_of_a_pool_do_not_go_to_another(api: Api) -> None:
    """Neither as what is submitted of a command lacks them there, nor as an experiment has none there."""
    credentials = {"registry_auth": {"username": "u", "password": "p", "serveraddress": "r.example"}}
    own = PoolConfig(pool_name="default", task_container_defaults=credentials)
    cluster = structs.replace(api.app.cluster, resource_pools=(own, PoolConfig(pool_name="other")))
    async with serving(replace(api.app, cluster=cluster)) as url:
        config = {"entrypoint": ["a"], "resources": {"slots": 1, "fallback_pools": ["other"]}}
        launched = await api.ok("POST", f"{url}/api/v1/commands", json={"config": config})
        text = TASK % "fallback_pools: [other]"
        task = (await api.ok("POST", f"{url}/api/v1/generic-tasks", json={"config": text}))["taskId"]
        created = await _create(api, url, "fallback_pools: [other]")
    for job in (await _job(api, launched["command"]["id"]), await _job(api, task), created["experiment"]["jobId"]):
        _, other = await _offers(api, job)
        assert other.changes["environment"] == {"registry_auth": None}


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ("fallback_pools: [nowhere]", "resources.fallback_pools[0]: resource pool nowhere does not exist or is not"),
        ("fallback_pools: [other, other]", "resources.fallback_pools[1]: resource pool other is named twice"),
        ("fallback_pools: [{pool: other, after: soon}]", "resources.fallback_pools[0].after"),
        (
            "time_limit: 3h, fallback_pools: [limited]",
            "resources.fallback_pools: resource pool limited: resources.time_limit (3h) is above the limit of",
        ),
        (
            "is_single_node: true, fallback_pools: [other]",
            "resources.fallback_pools: resource pool other: validating resources: invalid resource request: slots (4)",
        ),
    ],
)
async def test_what_a_pool_refuses_is_refused_with_the_field(api: Api, resources: str, said: str) -> None:
    async with _served(api) as url:
        assert said in await api.refused(
            400, "POST", f"{url}/api/v1/experiments", json={"config": EXPERIMENT % resources}
        )


async def test_a_pool_that_is_bound_to_another_workspace_is_refused(api: Api) -> None:
    workspace = (await api.ok("POST", "/api/v1/workspaces", json={"name": "alone"}))["workspace"]["id"]
    async with api.app.db.transaction() as connection:
        await connection.execute(insert(pool_bindings).values(workspace_id=workspace, pool="other"))
    async with _served(api) as url:
        body = {"config": EXPERIMENT % FALLBACK}
        said = await api.refused(400, "POST", f"{url}/api/v1/experiments", json=body)
    async with api.app.db.transaction() as connection:
        await connection.execute(delete(pool_bindings))
    assert said.startswith("resources.fallback_pools[0]: resource pool other does not exist or is not available to")


async def test_the_example_of_the_page_is_accepted(api: Api) -> None:
    example = next(block for block in blocks_of(document("scheduling")) if block.heading == "Fallback pools")
    named = tuple(PoolConfig(pool_name=name) for name in ("default", "spot", "reserved", "on-demand"))
    config = f"entrypoint: a\nsearcher: {{name: single, metric: loss}}\n{example.text}"
    async with serving(replace(api.app, cluster=structs.replace(api.app.cluster, resource_pools=named))) as url:
        created = await api.ok("POST", f"{url}/api/v1/experiments", json={"config": config, "activate": False})
    wanted = [{"pool": "reserved", "after": 1800}, {"pool": "on-demand", "after": 600}]
    assert created["config"]["resources"]["fallback_pools"] == wanted


async def test_it_may_come_from_a_template(api: Api) -> None:
    template = {"name": "spot-first", "config": {"resources": {"fallback_pools": ["other"]}}}
    async with _served(api) as url:
        await api.ok("POST", f"{url}/api/v1/templates/spot-first", json=template)
        created = await _create(api, url, "priority: 3", template="spot-first")
        own = await _create(api, url, "fallback_pools: [limited]", template="spot-first")
    assert created["config"]["resources"]["fallback_pools"] == NORMAL[:1]
    assert own["config"]["resources"]["fallback_pools"] == [{"pool": "limited", "after": 600}]


async def test_a_check_says_in_which_pool_it_starts_and_when(api: Api) -> None:
    """Its own has no room, the other has."""

    async def answer(message: CoreMessage) -> bytes:
        asked = msgspec.json.decode(message.data, type=QueueCheck).requests
        answers = (
            QueueAnswer(starts_now=True, nodes=("n1",))
            if one.pool == "other"
            else QueueAnswer(reason_code="no_room", reason="full")
            for one in asked
        )
        variables = [(one.pool, one.num_pods) for one in asked[:3]]
        assert variables == [("default", 1), ("other", 2), ("limited", 1)]
        return msgspec.json.encode(QueueAnswers(answers=tuple(answers)))

    async with _served(api) as url, api.app.bus.serve(subjects.CHECK_QUEUE, answer):
        checked = await api.ok("POST", f"{url}/api/v1/resolute/check", json={"config": EXPERIMENT % FALLBACK})
    start = checked["start"]
    assert (start["resourcePool"], start["startsNow"], start["reason"]) == ("other", False, "full")
    assert start["basis"] == "in resource pool other, when it has waited for 5m"
    assert start["estimatedStart"]


async def test_a_pool_that_a_policy_fixes_is_not_left(api: Api) -> None:
    workspace = (await api.ok("POST", "/api/v1/workspaces", json={"name": "fixed pool"}))["workspace"]["id"]
    path = f"/api/v1/workspaces/{workspace}/projects"
    project = (await api.ok("POST", path, json={"name": "p", "workspaceId": workspace}))["project"]["id"]

    async def fix(resources: str) -> None:
        policies = f"{{invariant_config: {{resources: {resources}}}}}"
        body = {"workspaceId": workspace, "workloadType": "EXPERIMENT", "configPolicies": policies}
        await api.ok("PUT", f"/api/v1/config-policies/workspaces/{workspace}/EXPERIMENT", json=body)

    async with _served(api) as url:
        await fix("{resource_pool: limited}")
        body = {"config": EXPERIMENT % "fallback_pools: [{pool: other, after: 0}]", "projectId": project}
        said = await api.refused(400, "POST", f"{url}/api/v1/experiments", json=body)
        own = await _create(api, url, "fallback_pools: [limited]", projectId=project)
        await fix("{resource_pool: limited, fallback_pools: [default]}")
        fixed = await _create(api, url, "fallback_pools: [other]", projectId=project)
    assert said.startswith("resources.fallback_pools must be empty")
    assert said.endswith("policy to limited")
    assert "fallback_pools" not in own["config"]["resources"]
    assert fixed["config"]["resources"]["fallback_pools"] == [{"pool": "default", "after": 600}]


async def test_a_check_asks_no_more_than_is_answered(api: Api) -> None:
    """What was submitted comes first, with all of its fallback pools."""
    names = [f"spare-{number}" for number in range(8)]
    pools = (PoolConfig(pool_name="default"), *(PoolConfig(pool_name=name) for name in names))
    asked: list[str] = []

    async def answer(message: CoreMessage) -> bytes:
        requests = msgspec.json.decode(message.data, type=QueueCheck).requests
        asked.extend(one.pool for one in requests)
        return msgspec.json.encode(QueueAnswers(answers=tuple(QueueAnswer() for _ in requests[:MOST])))

    config = EXPERIMENT.replace("slots_per_trial: 4", "slots_per_trial: 16") % f"fallback_pools: [{', '.join(names)}]"
    cluster = structs.replace(api.app.cluster, resource_pools=pools)
    async with (
        serving(replace(api.app, cluster=cluster)) as url,
        api.app.bus.serve(subjects.CHECK_QUEUE, answer),
    ):
        checked = await api.ok("POST", f"{url}/api/v1/resolute/check", json={"config": config})
    assert checked["start"]["resourcePool"] == "default"
    assert (asked[:9], len(asked)) == (["default", *names], MOST)


async def _create(api: Api, url: str, resources: str, **body: Any) -> dict[str, Any]:
    body = {"config": EXPERIMENT % resources, "activate": False, **body}
    created: dict[str, Any] = await api.ok("POST", f"{url}/api/v1/experiments", json=body)
    return created


async def _offers(api: Api, job: str) -> list[Any]:
    query = select(pool_offers).where(pool_offers.c.job_id == job).order_by(pool_offers.c.rank)
    async with api.app.db.read() as connection:
        return list((await connection.execute(query)).all())


async def _job(api: Api, task: str) -> str:
    async with api.app.db.read() as connection:
        job: str = (await connection.execute(select(tasks.c.job_id).where(tasks.c.task_id == task))).scalar_one()
        return job


async def test_what_goes_on_keeps_what_was_found_of_its_pools(api: Api) -> None:
    async with _served(api) as url:
        experiment = (await _create(api, url, FALLBACK))["experiment"]
        before = await _offers(api, experiment["jobId"])
        await api.rows.set_experiment(experiment["id"], state="CANCELED", end_time=datetime.now(UTC))
        async with api.app.db.transaction() as connection:
            await connection.execute(update(pool_offers).values(is_open=False))
        body = {"id": experiment["id"], "overrideConfig": "{searcher: {max_length: {batches: 7}}}"}
        await api.ok("POST", f"{url}/api/v1/experiments/continue", json=body)
    assert await _offers(api, experiment["jobId"]) == [row for row in before if row.is_open]


@pytest.mark.parametrize(
    ("resources", "named", "limits"),
    [
        ("time_limit: 1h", "[other, limited]", [3600, 3600, 3600]),
        ("time_limit: 1h, fallback_pools: [other]", "[other, limited]", [3600, 3600, 3600]),
        ("resource_pool: other", "[default, limited]", [86_400, None, 7200]),  # it came with none
        ("resource_pool: other, fallback_pools: [default]", "[default, limited]", [86_400, None, 7200]),
    ],
)
async def test_pools_named_when_it_goes_on_keep_to_the_limit_that_it_came_with(
    api: Api, resources: str, named: str, limits: list[int | None]
) -> None:
    async with _served(api) as url:
        experiment = await _ended(api, url, resources)
        await _continue(api, url, experiment, f"fallback_pools: {named}")
    assert [row.time_limit_s for row in await _offers(api, experiment["jobId"])] == limits


async def test_a_pool_named_when_it_goes_on_allows_the_limit_that_it_came_with(api: Api) -> None:
    async with _served(api) as url:
        experiment = await _ended(api, url, "time_limit: 3h")
        body = {"id": experiment["id"], "overrideConfig": "{resources: {fallback_pools: [limited]}}"}
        said = await api.refused(400, "POST", f"{url}/api/v1/experiments/continue", json=body)
        await _continue(api, url, experiment, "fallback_pools: [limited], time_limit: 2h")
    assert said.startswith("resources.fallback_pools: resource pool limited: resources.time_limit (3h) is above")
    assert [row.time_limit_s for row in await _offers(api, experiment["jobId"])] == [7200, 7200]


async def _ended(api: Api, url: str, resources: str) -> dict[str, Any]:
    experiment: dict[str, Any] = (await _create(api, url, resources))["experiment"]
    await api.rows.set_experiment(experiment["id"], state="CANCELED", end_time=datetime.now(UTC))
    return experiment


async def _continue(api: Api, url: str, experiment: dict[str, Any], resources: str) -> None:
    body = {"id": experiment["id"], "overrideConfig": f"{{resources: {{{resources}}}}}"}
    await api.ok("POST", f"{url}/api/v1/experiments/continue", json=body)
