"""Time limits when work is submitted: as they are written, and as the pool has them (docs/scheduling.md)."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from libs.db.tables.tasks import allocations
from tests.harness.pages.blocks import blocks_of, document
from tests.integration.api.experiments.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIG = "{entrypoint: a, searcher: {name: single, metric: loss}, resources: {slots_per_trial: 0, %s}}"
ABOVE = "resources.time_limit (3h) is above the limit of resource pool limited (max_time_limit: 2h)"
MALFORMED = 'must be whole seconds above 0, or a text such as "90m", "12h" or "1d12h"'


async def create(api: Api, resources: str, **body: Any) -> dict[str, Any]:
    body = {"config": CONFIG % resources, "activate": False, **body}
    created: dict[str, Any] = await api.ok("POST", "/api/v1/experiments", json=body)
    return created


async def stored_limit(api: Api, task: str) -> int | None:
    """Of the first allocation of a task."""
    async with api.app.db.read() as connection:
        limit: int | None = await connection.scalar(
            select(allocations.c.time_limit_s).where(allocations.c.task_id == task)
        )
    return limit


@pytest.mark.parametrize(
    ("resources", "limit"),
    [
        ("resource_pool: default", None),
        ("resource_pool: default, time_limit: 1d12h", 129_600),
        ("resource_pool: default, time_limit: 90", 90),
        ("resource_pool: limited", 3600),
        ("resource_pool: limited, time_limit: 2h", 7200),
    ],
)
async def test_what_an_experiment_gets_is_in_its_configuration(api: Api, resources: str, limit: int | None) -> None:
    created = await create(api, resources)
    assert created["config"]["resources"].get("time_limit") == limit
    stored = await api.ok("GET", f"/api/v1/experiments/{created['experiment']['id']}")
    assert stored["config"]["resources"].get("time_limit") == limit
    assert ("time_limit" in stored["config"]["resources"]) is (limit is not None)


async def test_the_example_of_the_page_is_accepted(api: Api) -> None:
    example = next(block for block in blocks_of(document("scheduling")) if block.heading == "Time limits")
    config = f"entrypoint: a\nsearcher: {{name: single, metric: loss}}\n{example.text}"
    created = await api.ok("POST", "/api/v1/experiments", json={"config": config, "activate": False})
    assert created["config"]["resources"]["time_limit"] == 43_200


async def test_what_is_above_the_limit_of_the_pool_is_refused(api: Api) -> None:
    body = {"config": CONFIG % "resource_pool: limited, time_limit: 3h"}
    assert await api.refused(400, "POST", "/api/v1/experiments", json=body) == ABOVE


async def test_what_is_no_time_limit_is_refused_with_the_field(api: Api) -> None:
    body = {"config": CONFIG % "time_limit: soon"}
    message = await api.refused(400, "POST", "/api/v1/experiments", json=body)
    assert "resources.time_limit" in message
    assert MALFORMED in message


async def test_it_may_come_from_a_template(api: Api) -> None:
    template = {"name": "brief", "config": {"resources": {"time_limit": "30m"}}}
    await api.ok("POST", "/api/v1/templates/brief", json=template)
    created = await create(api, "resource_pool: limited", template="brief")
    assert created["config"]["resources"]["time_limit"] == 1800
    launched = await api.ok("POST", "/api/v1/commands", json={"config": {"entrypoint": ["a"]}, "templateName": "brief"})
    assert launched["config"]["resources"]["time_limit"] == 1800


@pytest.mark.parametrize("noun", ["commands", "notebooks", "shells"])
async def test_other_tasks_have_them_too(api: Api, noun: str) -> None:
    def config(**resources: Any) -> dict[str, Any]:
        return {"config": {"entrypoint": ["a"], "resources": {"slots": 0, "resource_pool": "limited", **resources}}}

    launched = await api.ok("POST", f"/api/v1/{noun}", json=config())
    assert launched["config"]["resources"]["time_limit"] == 3600
    task = launched[noun.removesuffix("s")]["id"]
    assert await stored_limit(api, task) == 3600
    assert ABOVE in await api.refused(400, "POST", f"/api/v1/{noun}", json=config(time_limit="3h"))
    assert MALFORMED in await api.refused(400, "POST", f"/api/v1/{noun}", json=config(time_limit="1h1h"))
    launched = await api.ok("POST", f"/api/v1/{noun}", json={"config": {"resources": {"slots": 0}}})
    assert "time_limit" not in launched["config"]["resources"]


async def test_generic_tasks_have_them_too(api: Api) -> None:
    text = "{entrypoint: [a], resources: {slots: 0, resource_pool: limited, time_limit: %s}}"
    created = await api.ok("POST", "/api/v1/generic-tasks", json={"config": text % "10m"})
    assert await stored_limit(api, created["taskId"]) == 600
    assert await api.refused(400, "POST", "/api/v1/generic-tasks", json={"config": text % "3h"}) == ABOVE


async def test_a_job_does_not_move_to_a_pool_that_allows_less(api: Api) -> None:
    created = await create(api, "resource_pool: default, time_limit: 3h")
    job = created["experiment"]["jobId"]
    body = {"updates": [{"jobId": job, "resourcePool": "limited"}]}
    assert await api.refused(400, "POST", "/api/v1/job-queues", json=body) == ABOVE


@pytest.mark.parametrize(("own", "limit"), [("", 3600), (", time_limit: 2h", 7200)])
async def test_a_job_that_is_moved_gets_the_limit_of_the_pool_unless_it_has_one(api: Api, own: str, limit: int) -> None:
    experiment = (await create(api, f"resource_pool: default{own}"))["experiment"]

    async def resources_in(pool: str) -> dict[str, Any]:
        body = {"updates": [{"jobId": experiment["jobId"], "resourcePool": pool}]}
        await api.ok("POST", "/api/v1/job-queues", json=body)
        config = (await api.ok("GET", f"/api/v1/experiments/{experiment['id']}"))["config"]
        resources: dict[str, Any] = config["resources"]
        return resources

    moved = await resources_in("limited")
    assert (moved["resource_pool"], moved["time_limit"]) == ("limited", limit)
    back = await resources_in("default")
    assert (back["resource_pool"], back["time_limit"]) == ("default", limit)
