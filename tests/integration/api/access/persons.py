"""Users with roles of an api, as tests of rights need them."""

from __future__ import annotations

from contextlib import ExitStack

import httpx
from sqlalchemy import insert, select

from libs.db.engine import Connection
from libs.db.tables.users import groups, role_assignments
from tests.harness.api import ApiProcess
from tests.integration.api.world import CLUSTER, World


class Persons:
    """Users of one api, each with a client of theirs."""

    def __init__(self, world: World, api: ApiProcess, stack: ExitStack) -> None:
        self.world, self._api, self._stack = world, api, stack
        self._admin = stack.enter_context(api.client())
        self.ids: dict[str, int] = {"admin": 1}
        self.clients: dict[str, httpx.Client] = {"admin": self._admin}

    def add(self, name: str) -> httpx.Client:
        made = self._admin.post("/api/v1/users", json={"user": {"username": name, "active": True}})
        assert made.status_code == 200, made.text
        self.ids[name] = made.json()["user"]["id"]
        self.clients[name] = self._stack.enter_context(self._api.client(name))
        return self.clients[name]

    def give(self, name: str, role_id: int, workspace_id: int | None = None) -> None:
        async def work(connection: Connection) -> None:
            await give(connection, self.ids[name], role_id, workspace_id)

        self.world.in_database(work)


async def give(connection: Connection, user_id: int, role_id: int, workspace_id: int | None) -> None:
    group = await connection.scalar(select(groups.c.id).where(groups.c.user_id == user_id))
    values = {"group_id": group, "role_id": role_id, "workspace_id": workspace_id}
    await connection.execute(insert(role_assignments).values(**values))


def api_with(world: World, kind: str) -> ApiProcess:
    path = world.directory / f"{kind}.yaml"
    path.write_text(f"{CLUSTER}security: {{authz: {{type: {kind}}}}}\n")
    return world.api(kind, cluster_config=str(path))
