"""What is submitted may name a level of the topology of its pool, and no other (docs/scheduling.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from libs.cluster.config import (
    PoolConfig,
    ResourceManagerConfig,
    SchedulerConfig,
    TopologyConfig,
)
from tests.harness.pages.blocks import blocks_of, document
from tests.integration.api.experiments.conftest import Api, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

RACK = "example.com/rack"
CONFIG = "{entrypoint: a, searcher: {name: single, metric: loss}, resources: {slots_per_trial: 0, %s}}"
UNKNOWN = "resources.topology.required: resource pool default has no level block; it has example.com/zone, " + RACK
NONE = f"resources.topology.required: resource pool flat has no level {RACK}; it has none"


@asynccontextmanager
async def racked(api: Api) -> AsyncIterator[str]:
    """An api of a cluster on Kubernetes whose first pool has zones and racks."""
    scheduler = SchedulerConfig(topology=TopologyConfig(levels=("example.com/zone", RACK)))
    cluster = structs.replace(
        api.app.cluster,
        resource_manager=ResourceManagerConfig(type="kubernetes", max_slots_per_pod=8),
        resource_pools=(PoolConfig(pool_name="default", scheduler=scheduler), PoolConfig(pool_name="flat")),
    )
    async with serving(replace(api.app, cluster=cluster)) as url:
        yield url


async def create(api: Api, url: str, resources: str, **body: Any) -> dict[str, Any]:
    body = {"config": CONFIG % resources, "activate": False, **body}
    created: dict[str, Any] = await api.ok("POST", f"{url}/api/v1/experiments", json=body)
    return created


async def test_it_is_stored_as_it_is_written(api: Api) -> None:
    async with racked(api) as url:
        created = await create(api, url, f"topology: {{required: {RACK}}}")
        assert created["config"]["resources"]["topology"] == {"required": RACK}
        stored = await api.ok("GET", f"{url}/api/v1/experiments/{created['experiment']['id']}")
        assert stored["config"]["resources"]["topology"] == {"required": RACK}
        plain = await create(api, url, "resource_pool: default")
        assert "topology" not in plain["config"]["resources"]


async def test_the_example_of_the_page_is_accepted(api: Api) -> None:
    example = next(block for block in blocks_of(document("scheduling")) if block.heading == "Near each other")
    config = f"entrypoint: a\nsearcher: {{name: single, metric: loss}}\n{example.text}"
    async with racked(api) as url:
        created = await api.ok("POST", f"{url}/api/v1/experiments", json={"config": config, "activate": False})
    assert created["config"]["resources"]["topology"] == {"required": RACK}


async def test_a_level_that_the_pool_does_not_have_is_refused_with_those_that_it_has(api: Api) -> None:
    block = "topology: {required: block}"
    async with racked(api) as url:
        body = {"config": CONFIG % block, "activate": False}
        assert await api.refused(400, "POST", f"{url}/api/v1/experiments", json=body) == UNKNOWN
        task = {"config": f"{{entrypoint: [a], resources: {{slots: 0, {block}}}}}"}
        assert await api.refused(400, "POST", f"{url}/api/v1/generic-tasks", json=task) == UNKNOWN
        command = {"config": {"entrypoint": ["a"], "resources": {"slots": 0, "topology": {"required": "block"}}}}
        assert (await api.refused(400, "POST", f"{url}/api/v1/commands", json=command)).endswith(UNKNOWN)
        both = {"config": CONFIG % f"topology: {{required: {RACK}, preferred: {RACK}}}"}
        said = await api.refused(400, "POST", f"{url}/api/v1/experiments", json=both)
        assert "resources.topology: must name one level, either as preferred or as required" in said


async def test_templates_may_have_it(api: Api) -> None:
    async with racked(api) as url:
        template = {"name": "near", "config": {"resources": {"topology": {"preferred": RACK}}}}
        await api.ok("POST", f"{url}/api/v1/templates/near", json=template)
        created = await create(api, url, "resource_pool: default", template="near")
        assert created["config"]["resources"]["topology"] == {"preferred": RACK}
        own = await create(api, url, "topology: {required: example.com/zone}", template="near")
        assert own["config"]["resources"]["topology"] == {"required": "example.com/zone"}
        launched = {"config": {"entrypoint": ["a"], "resources": {"slots": 0}}, "templateName": "near"}
        command = await api.ok("POST", f"{url}/api/v1/commands", json=launched)
        assert command["config"]["resources"]["topology"] == {"preferred": RACK}


async def test_config_policies_may_fix_it(api: Api) -> None:
    async with racked(api) as url:
        created = await api.ok("POST", f"{url}/api/v1/workspaces", json={"name": "near each other"})
        workspace = created["workspace"]["id"]
        policies = f"{{invariant_config: {{resources: {{topology: {{required: {RACK}}}}}}}}}"
        path = f"{url}/api/v1/config-policies/workspaces/{workspace}/EXPERIMENT"
        body = {"workspaceId": workspace, "workloadType": "EXPERIMENT", "configPolicies": policies}
        await api.ok("PUT", path, json=body)
        project = await api.ok(
            "POST", f"{url}/api/v1/workspaces/{workspace}/projects", json={"name": "p", "workspaceId": workspace}
        )
        asked = "topology: {preferred: example.com/zone}"
        fixed = await create(api, url, asked, projectId=project["project"]["id"])
        assert fixed["config"]["resources"]["topology"] == {"required": RACK}


async def test_a_job_does_not_move_to_a_pool_without_its_level(api: Api) -> None:
    async with racked(api) as url:
        created = await create(api, url, f"topology: {{required: {RACK}}}")
        body = {"updates": [{"jobId": created["experiment"]["jobId"], "resourcePool": "flat"}]}
        assert await api.refused(400, "POST", f"{url}/api/v1/job-queues", json=body) == NONE


async def test_every_fallback_pool_has_its_level(api: Api) -> None:
    said = f"resources.fallback_pools: resource pool flat: {NONE}"
    fallback = f"topology: {{required: {RACK}}}, fallback_pools: [flat]"
    async with racked(api) as url:
        experiment = {"config": CONFIG % fallback, "activate": False}
        assert await api.refused(400, "POST", f"{url}/api/v1/experiments", json=experiment) == said
        task = {"config": f"{{entrypoint: [a], resources: {{slots: 0, {fallback}}}}}"}
        assert await api.refused(400, "POST", f"{url}/api/v1/generic-tasks", json=task) == said
        resources = {"slots": 0, "topology": {"required": RACK}, "fallback_pools": ["flat"]}
        command = {"config": {"entrypoint": ["a"], "resources": resources}}
        assert (await api.refused(400, "POST", f"{url}/api/v1/commands", json=command)).endswith(said)
        plain = await create(api, url, "fallback_pools: [flat]")
        assert plain["config"]["resources"]["fallback_pools"] == [{"pool": "flat", "after": 600}]
