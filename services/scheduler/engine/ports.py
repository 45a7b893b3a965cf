"""Ports of trials, different for all allocations that live at the same time: with host networking pods share a node.

Source: spec/harness-protocol.md 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sqlalchemy import select, text

from libs.db.engine import Connection
from libs.db.tables.tasks import allocations

BASES: Final = {
    "DTRAIN_SSH_PORT": 12350,
    "INTER_TRAIN_PROCESS_COMM_PORT_1": 12360,
    "INTER_TRAIN_PROCESS_COMM_PORT_2": 12365,
    "C10D_PORT": 29400,
}
LAST: Final = 65535
_LOCK: Final = 0x5E50_1075
"""Advisory lock: planners of several pools choose ports one after the other."""


class PortsExhaustedError(Exception):
    """More allocations live than there are ports."""


class PortRegistry:
    """Ports in use all over the cluster."""

    def __init__(self, taken: Iterable[int]) -> None:
        self._taken = set(taken)
        # Below these all ports are taken; nothing is given back while a registry is in use.
        self._lowest = dict(BASES)

    def reserve(self) -> dict[str, int]:
        """The lowest free port from each base upwards. Raises PortsExhaustedError."""
        return {name: self._take(name) for name in BASES}

    def _take(self, name: str) -> int:
        port = self._lowest[name]
        while port in self._taken:
            port += 1
        if port > LAST:
            raise PortsExhaustedError(f"no port is free for {name}")
        self._taken.add(port)
        self._lowest[name] = port + 1
        return port


async def lock_registry(connection: Connection) -> PortRegistry:
    """The registry, for this transaction only."""
    await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    query = select(allocations.c.ports).where(
        allocations.c.released_at.is_(None), allocations.c.assigned_at.is_not(None)
    )
    return PortRegistry(port for ports in (await connection.execute(query)).scalars() for port in ports.values())
