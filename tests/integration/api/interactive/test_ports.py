"""Tasks that are processes of this machine share its ports with whatever else runs here."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from libs.db.engine import Connection
from libs.tasks.interactive.kinds import InteractiveKind, TaskService
from services.api.actions.interactive import ports
from tests.integration.api.world import World


def test_a_port_on_which_somebody_listens_is_left_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    service = TaskService(range(2, 4))
    monkeypatch.setattr(ports, "KINDS", {"SHELL": InteractiveKind("shell", "Shell", service)})
    shell: Any = SimpleNamespace(task_type="SHELL", config={"environment": {"proxy_ports": None}})

    async def reserve(connection: Connection) -> int | None:
        return await ports.reserve_port(connection, shell)

    for listened, left in ((2, 3), (3, 2)):
        monkeypatch.setattr(ports, "ports_listened_on_here", lambda among, one=listened: {one} & set(among))
        assert world.in_database(reserve) == left


def test_who_listens_is_found_on_any_address() -> None:
    for address in ("127.0.0.1", "0.0.0.0"):
        with socket.create_server((address, 0)) as other:
            port = other.getsockname()[1]
            assert port in ports.ports_listened_on_here(range(port, port + 1))
        assert ports.ports_listened_on_here([port]) == set()
