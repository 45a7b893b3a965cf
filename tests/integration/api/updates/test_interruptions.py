"""Updates while the database, the bus or an api is lost, to any client and to the one of Determined."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from tests.harness import NatsServer
from tests.harness.api import ApiProcess
from tests.harness.containers import ContainerNats
from tests.integration.api.updates.conftest import replica
from tests.integration.api.updates.following import Balancer, ClientStream, following
from tests.integration.api.updates.objects import call, model, project, version, workspace
from tests.integration.api.world import World


@pytest.fixture(scope="module")
def api(world: World) -> Any:
    with replica(world, "interrupted", updates={"look_interval_s": 600}) as api:
        yield api


async def test_a_lost_database_or_bus_costs_a_delay(
    world: World, api: ApiProcess, nats_server: NatsServer | ContainerNats
) -> None:
    cut = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    async with AsyncExitStack() as stack:
        client = stack.enter_context(api.client())
        here = workspace(client)
        follower = await stack.enter_async_context(following(api, api.token()))
        await follower.subscribe(projects={"workspace_ids": [here]})
        await asyncio.to_thread(world.in_database, lambda c: c.execute(text(cut)))
        made = await asyncio.to_thread(_until_made, client, here)
        await follower.until(lambda: made in follower.ids("projects"), timeout_s=30)
        nats_server.kill()
        made = project(client, here)
        nats_server.start()
        await follower.until(lambda: made in follower.ids("projects"), timeout_s=30)


def _until_made(client: httpx.Client, workspace_id: int) -> int:
    """The database may just have gone."""
    for _ in range(50):
        try:
            return project(client, workspace_id)
        except AssertionError as error:
            if "does not answer" not in str(error):
                raise
    raise AssertionError("the database is still away")


@pytest.mark.slow
async def test_the_client_of_determined_survives_a_killed_api(world: World, api: ApiProcess) -> None:
    async with AsyncExitStack() as stack:
        first = replica(world, "killed")
        first.start()
        client = stack.enter_context(api.client())
        here = workspace(client)
        kept, gone = project(client, here), project(client, here)
        model_id, name = model(client, here)
        version_id = version(world, model_id, 1)
        balancer = await stack.enter_async_context(Balancer().serving())
        balancer.target = first.url
        token = api.token()
        specs = {
            "projects": {"workspace_id": here},
            "models": {"workspace_id": [here]},
            "model_versions": {"model_version_id": version_id},
        }
        stream = stack.enter_context(ClientStream(balancer.url, token, **specs))
        events = await stream.synced()
        assert events[0] == ("Sync", {"sync_id": "mine", "complete": False})
        assert [(kind, value["id"]) for kind, value in events[1:-1]] == [
            ("ProjectMsg", kept),
            ("ProjectMsg", gone),
            ("ModelMsg", model_id),
            ("ModelVersionMsg", version_id),
        ]
        # It would end with a TypeError if it were told of this.
        call(client, "DELETE", f"models/{name}/versions/1")
        touched, _ = await stream.next()
        assert touched == "ModelMsg"
        call(client, "PATCH", f"projects/{kept}", {"description": "live"})
        kind, value = await stream.next()
        assert (kind, value["id"], value["description"]) == ("ProjectMsg", kept, "live")

        first.process.kill()
        call(client, "DELETE", f"projects/{gone}")
        call(client, "PATCH", f"projects/{kept}", {"description": "offline"})
        balancer.target = api.url
        told = [await stream.next(), await stream.next()]
        assert told[0] == ("ProjectsDeleted", str(gone))
        assert (told[1][0], told[1][1]["description"]) == ("ProjectMsg", "offline")
        call(client, "DELETE", f"models/{name}")
        assert await stream.next() == ("ModelsDeleted", str(model_id))
