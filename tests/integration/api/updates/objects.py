"""What updates are about, made as users make it."""

from __future__ import annotations

from itertools import count
from typing import Any

import httpx
from sqlalchemy import insert

from libs.db.engine import Connection
from libs.db.tables.models import model_versions
from tests.integration.api.world import World

_NONCE = count()


def call(client: httpx.Client, method: str, path: str, body: Any = None) -> Any:
    reply = client.request(method, f"/api/v1/{path}", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def workspace(client: httpx.Client) -> int:
    made = call(client, "POST", "workspaces", {"name": f"updates {next(_NONCE)}"})
    return int(made["workspace"]["id"])


def project(client: httpx.Client, workspace_id: int) -> int:
    body = {"name": f"p{next(_NONCE)}", "workspaceId": workspace_id}
    return int(call(client, "POST", f"workspaces/{workspace_id}/projects", body)["project"]["id"])


def model(client: httpx.Client, workspace_id: int) -> tuple[int, str]:
    name = f"model {next(_NONCE)}"
    made = call(client, "POST", "models", {"name": name, "workspaceId": workspace_id, "labels": ["a"]})
    return int(made["model"]["id"]), name


def version(world: World, model_id: int, number: int) -> int:
    """A row that nobody has announced."""

    async def work(connection: Connection) -> int:
        new = insert(model_versions).values(model_id=model_id, version=number, checkpoint_uuid="c", owner_id=1)
        return int((await connection.execute(new.returning(model_versions.c.id))).scalar_one())

    ident: int = world.in_database(work)
    return ident
