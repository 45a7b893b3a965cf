"""``/stream`` as any client sees it: what is told at first, what follows, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from aiohttp import ClientSession, WSServerHandshakeError
from sqlalchemy import text

from libs.db.engine import Connection
from tests.harness.api import ApiProcess
from tests.integration.api.updates.following import following
from tests.integration.api.updates.objects import call, model, project, version, workspace
from tests.integration.api.world import World

PROJECT_KEYS = "id name description archived created_at notes workspace_id user_id immutable state key seq"
MODEL_KEYS = (
    "id name description archived creation_time notes workspace_id user_id last_updated_time metadata labels seq"
)
VERSION_KEYS = (
    "id name version checkpoint_uuid creation_time last_updated_time metadata model_id user_id comment labels notes"
    " workspace_id seq"
)


@pytest.fixture(scope="module")
def token(api: ApiProcess) -> str:
    return api.token()


@pytest.fixture(scope="module")
def elsewhere(other: ApiProcess) -> Iterator[httpx.Client]:
    """Requests to another replica than the one that is followed."""
    with other.client() as client:
        yield client


async def test_all_kinds_are_followed_across_replicas(
    world: World, api: ApiProcess, token: str, elsewhere: httpx.Client
) -> None:
    here = workspace(elsewhere)
    first = project(elsewhere, here)
    model_id, name = model(elsewhere, here)
    version_id = version(world, model_id, 1)
    async with following(api, token) as follower:
        await follower.subscribe(
            projects={"workspace_ids": [here]},
            models={"workspace_ids": [here]},
            modelversions={"model_ids": [model_id]},
        )
        assert follower.messages[0] == {"sync_id": "1", "complete": False}
        for kind in ("projects", "models", "modelversions"):
            assert {f"{kind}_deleted": ""} in follower.messages
        assert sorted(follower.there["projects"][first]) == sorted(PROJECT_KEYS.split())
        assert sorted(follower.there["models"][model_id]) == sorted(MODEL_KEYS.split())
        assert sorted(follower.there["modelversions"][version_id]) == sorted(VERSION_KEYS.split())
        assert follower.there["projects"][first]["state"] == "UNSPECIFIED"
        assert follower.there["models"][model_id]["labels"] == ["a"]
        assert follower.there["modelversions"][version_id]["workspace_id"] == ""

        second = project(elsewhere, here)
        await follower.until(lambda: second in follower.ids("projects"))
        call(elsewhere, "PATCH", f"projects/{first}", {"name": "renamed"})
        await follower.until(lambda: follower.there["projects"][first]["name"] == "renamed")
        call(elsewhere, "POST", f"workspaces/{here}/archive")
        await follower.until(lambda: all(each["archived"] for each in follower.there["projects"].values()))
        call(elsewhere, "POST", f"workspaces/{here}/unarchive")
        await follower.until(lambda: not any(each["archived"] for each in follower.there["projects"].values()))
        there = workspace(elsewhere)
        call(elsewhere, "POST", f"projects/{second}/move", {"destinationWorkspaceId": there})
        await follower.until(lambda: follower.ids("projects") == {first})
        call(elsewhere, "DELETE", f"projects/{first}")
        await follower.until(lambda: not follower.ids("projects"))

        call(elsewhere, "PATCH", f"models/{name}/versions/1", {"comment": "good"})
        await follower.until(lambda: follower.there["modelversions"][version_id]["comment"] == "good")
        other_id, _ = model(elsewhere, here)
        await follower.until(lambda: other_id in follower.ids("models"))
        call(elsewhere, "DELETE", f"models/{name}/versions/1")
        await follower.until(lambda: not follower.ids("modelversions"))
        call(elsewhere, "DELETE", f"models/{name}")
        await follower.until(lambda: follower.ids("models") == {other_id})


async def test_who_comes_again_is_told_what_happened_meanwhile(
    api: ApiProcess, token: str, elsewhere: httpx.Client
) -> None:
    here = workspace(elsewhere)
    same, renamed, gone, left = (project(elsewhere, here) for _ in range(4))
    spec = {"workspace_ids": [here]}
    async with following(api, token) as follower:
        await follower.subscribe(projects=spec)
        since = max(each["seq"] for each in follower.there["projects"].values())
    call(elsewhere, "PATCH", f"projects/{renamed}", {"description": "new"})
    call(elsewhere, "DELETE", f"projects/{gone}")
    call(elsewhere, "POST", f"projects/{left}/move", {"destinationWorkspaceId": workspace(elsewhere)})
    added = project(elsewhere, here)
    known = f"{same}-{left}"
    async with following(api, token) as follower:
        await follower.subscribe({"projects": f"1,{known}"}, projects={**spec, "since": since})
        assert {"projects_deleted": f"1,{gone}-{left}"} in follower.messages
        assert follower.ids("projects") == {renamed, added}
        # On the same connection, and with a number that no row has yet.
        await follower.subscribe({"projects": str(same)}, projects={"project_ids": [same], "since": 2**40})
        assert {"projects_deleted": ""} in follower.messages[-3:]
        assert same in follower.ids("projects")


async def test_numbers_come_in_the_order_of_commits(world: World) -> None:
    """What commits last has the highest number, whenever it was written."""

    async def work(connection: Connection) -> tuple[int, int]:
        await connection.execute(text("UPDATE projects SET description = 'slow' WHERE id = 1"))
        while_open = await connection.scalar(text("SELECT seq FROM projects WHERE id = 1"))
        await connection.execute(text("SET CONSTRAINTS ALL IMMEDIATE"))
        return int(while_open or 0), int(await connection.scalar(text("SELECT seq FROM projects WHERE id = 1")) or 0)

    before, after = await asyncio.to_thread(world.in_database, work)
    assert after > before
    counted = "UPDATE projects SET max_local_id = max_local_id WHERE id = 1 RETURNING seq"
    assert await asyncio.to_thread(world.in_database, lambda c: c.scalar(text(counted))) == after


async def test_rights_decide_what_is_told(world: World, by_roles: ApiProcess) -> None:
    with by_roles.client() as admin:
        user = call(admin, "POST", "users", {"user": {"username": "follower", "active": True}})["user"]["id"]
        one, two = workspace(admin), workspace(admin)
        in_one, in_two = project(admin, one), project(admin, two)
        model_id, name = model(admin, two)
        version_id = version(world, model_id, 1)

        def assignment(workspace_id: int) -> dict[str, object]:
            role = {"role": {"roleId": 4}, "scopeWorkspaceId": workspace_id}
            return {"userRoleAssignments": [{"userId": user, "roleAssignment": role}]}

        call(admin, "POST", "roles/add-assignments", assignment(one))
        async with following(by_roles, by_roles.token("follower")) as follower:
            await follower.subscribe(
                {"projects": str(in_two)},
                projects={"workspace_ids": [one, two]},
                models={"model_ids": [model_id]},
                modelversions={"model_version_ids": [version_id]},
            )
            assert {"projects_deleted": str(in_two)} in follower.messages
            assert follower.ids("projects") == {in_one}
            assert not follower.ids("models") | follower.ids("modelversions")
            call(admin, "POST", "roles/add-assignments", assignment(two))
            await follower.until(lambda: follower.ids("projects") == {in_one, in_two})
            await follower.until(lambda: follower.ids("models") == {model_id})
            await follower.until(lambda: follower.ids("modelversions") == {version_id})
            call(admin, "PATCH", f"models/{name}", {"workspaceId": workspace(admin)})
            await follower.until(lambda: not follower.ids("models") | follower.ids("modelversions"))
            call(admin, "POST", "roles/remove-assignments", assignment(one))
            await follower.until(lambda: follower.ids("projects") == {in_two})
            call(admin, "PATCH", f"projects/{in_one}", {"description": "not for them"})
            call(admin, "PATCH", f"projects/{in_two}", {"description": "for them"})
            await follower.until(lambda: follower.there["projects"][in_two]["description"] == "for them")
            assert follower.ids("projects") == {in_two}


async def test_whose_login_ends_is_sent_away(api: ApiProcess) -> None:
    token = api.token("determined")
    async with following(api, token) as follower:
        await follower.subscribe(projects={"project_ids": [1]})
        async with httpx.AsyncClient(base_url=api.url, headers={"Authorization": f"Bearer {token}"}) as client:
            (await client.post("/api/v1/auth/logout")).raise_for_status()
        assert await follower.closed() == (1008, "invalid credentials")


BAD = [
    ("{", 1008, "startup message"),
    ('{"subscribe": {"projects": {}}}', 1008, "subscribe.projects: name what to follow"),
    ('{"known": {"projects": "3-1"}}', 1008, "known.projects"),
    ('{"subscribe": {"trials": {"ids": [1]}}}', 1008, "there are no updates of 'trials'"),
    ('{"x": ' + "[" * 100_000, 1008, "startup message"),
    ('{"sync_id": "' + "x" * 1025 + '"}', 1008, "sync_id"),
    (f'{{"subscribe": {{"projects": {{"project_ids": {[1] * 10_001}}}}}}}', 1008, "project_ids"),
    ('{"subscribe": {"models": {"user_ids": [9223372036854775808]}}}', 1008, "user_ids"),
    (b"{}", 1003, "text"),
    ('{"sync_id": "' + "x" * 2_000_000 + '"}', 1009, ""),
]


@pytest.mark.parametrize(("message", "code", "reason"), BAD, ids=lambda value: str(value)[:30])
async def test_bad_messages_close_the_connection_and_say_why(
    api: ApiProcess, token: str, message: str | bytes, code: int, reason: str
) -> None:
    async with following(api, token) as follower:
        await follower.subscribe(projects={"project_ids": [1]})
        send = follower.socket.send_str if isinstance(message, str) else follower.socket.send_bytes
        await send(message)  # type: ignore[arg-type]
        closed, why = await follower.closed()
        assert closed == code
        assert reason in why


async def test_requests_that_are_refused(api: ApiProcess, token: str) -> None:
    bearer = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=api.url) as client:
        plain = await client.get("/stream", headers=bearer)
        assert (plain.status_code, "websocket" in plain.json()["message"]) == (400, True)
        assert (await client.get("/stream")).status_code == 401
    cookie = {"Cookie": f"auth={token}"}
    async with ClientSession(base_url=api.url) as session:
        async with session.ws_connect("/stream", headers=cookie) as socket:
            await socket.send_str('{"sync_id": "by cookie"}')
            assert (await socket.receive_json(timeout=10))["sync_id"] == "by cookie"
        with pytest.raises(WSServerHandshakeError) as refused:
            await session.ws_connect("/stream", headers={**cookie, "Origin": "https://elsewhere.org"})
        assert refused.value.status == 403


def test_without_the_switch_there_is_no_such_route(world: World, token: str) -> None:
    path = world.directory / "without.yaml"
    path.write_text("feature_switches: [streaming_updates, -streaming_updates]\n")
    with world.api("without", cluster_config=str(path)) as without:
        reply = httpx.get(f"{without.url}/stream", headers={"Authorization": f"Bearer {token}"})
        assert (reply.status_code, reply.json()) == (404, {"message": "api not found: GET /stream"})
