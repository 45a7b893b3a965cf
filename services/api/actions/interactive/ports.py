"""Ports for the services of interactive tasks: different for all that live at the same time, for nodes may be shared,
with this service and whatever else runs here where tasks are processes of the same machine.

Source: docs/reference/tasks-and-cli.md 3 (ports).
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable
from typing import Final

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.tasks import tasks
from libs.tasks.interactive.containers import choose_port
from libs.tasks.interactive.kinds import KINDS
from services.api.actions.interactive.prepare import Prepared

_LOCK: Final = 0x5E50_1077
"""Advisory lock: until it has committed, nobody sees what another launch has chosen."""


async def reserve_port(connection: AsyncConnection, prepared: Prepared) -> int | None:
    """Where the service of the task will listen; None for a task without one.

    Launches of tasks with a service wait for one another from here to the end of their transaction.
    """
    service = KINDS[prepared.task_type].service
    if service is None:
        return None
    await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    own = {port["proxy_port"] for port in prepared.config["environment"]["proxy_ports"] or ()}
    taken = own | await _ports_in_use(connection) | ports_listened_on_here(service.ports)
    return choose_port(service, random.random(), taken=taken)  # noqa: S311  (no secret)


async def _ports_in_use(connection: AsyncConnection) -> set[int]:
    query = select(tasks.c.spec["proxy_ports"]).where(tasks.c.task_type.in_(tuple(KINDS)), tasks.c.end_time.is_(None))
    return {port["port"] for ports in (await connection.execute(query)).scalars() for port in ports or ()}


def ports_listened_on_here(ports: Iterable[int]) -> set[int]:
    """Those of ``ports`` on which something on this machine listens."""
    return {port for port in ports if _is_listened_on(port)}


def _is_listened_on(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what only lingers there is nobody
        try:
            probe.bind(("", port))
        except OSError:
            return True
    return False
