"""Ports of trials, different for all allocations that live at the same time: with host networking pods share a node.

Source: docs/reference/harness-protocol.md 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Final

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from services.scheduler.plan.decisions import Start, Wait
from services.scheduler.plan.reasons import WaitReason

BASES: Final = {
    "DTRAIN_SSH_PORT": 12350,
    "INTER_TRAIN_PROCESS_COMM_PORT_1": 12360,
    "INTER_TRAIN_PROCESS_COMM_PORT_2": 12365,
    "C10D_PORT": 29400,
}
LAST: Final = 65535
_LOCK: Final = 0x5E50_1075
"""Advisory lock: planners of several pools choose ports one after the other."""
_LOCK_PORTS: Final = PreparedStatement("SELECT pg_advisory_xact_lock(:key::bigint)")
_IN_USE: Final = PreparedStatement(
    "SELECT ports FROM allocations WHERE released_at IS NULL AND assigned_at IS NOT NULL"
)


class PortRegistry:
    """Ports that are taken all over the cluster."""

    def __init__(self, taken: Iterable[int]) -> None:
        self._taken = set(taken)
        # Below these all ports are taken; nothing is given back while a registry is in use.
        self._lowest = dict(BASES)

    def reserve(self) -> dict[str, int] | None:
        """The lowest free port from each base upwards; None when one has none, and then ever after."""
        found: dict[str, int] = {}
        for name in BASES:
            port = self._lowest[name]
            while port in self._taken:
                port += 1
            if port > LAST:
                return None
            self._taken.add(port)
            self._lowest[name] = port + 1
            found[name] = port
        return found


async def choose_with_ports(
    connection: Connection, starts: Sequence[Start], trials: Set[str], *, most: int, reserved: Iterable[int]
) -> tuple[list[Start], dict[str, dict[str, int]], list[Wait]]:
    """The first ``most`` of ``starts`` for which there are ports: those, the ports of those that are trials by
    allocation, and the trials before or behind them that have to wait for some. Others need none.

    trials    allocations that are of trials
    reserved  ports that nobody is given
    """
    chosen = list(starts[:most])
    if not any(start.allocation in trials for start in chosen):
        return chosen, {}, []
    registry = await _lock_registry(connection, reserved)
    ports = {start.allocation: registry.reserve() for start in chosen if start.allocation in trials}
    given = {allocation: found for allocation, found in ports.items() if found is not None}
    if len(given) == len(ports):
        return chosen, given, []
    portless = trials - given.keys()
    waits = [Wait(start.allocation, WaitReason.NO_PORTS) for start in starts if start.allocation in portless]
    return [start for start in starts if start.allocation not in portless][:most], given, waits


async def _lock_registry(connection: Connection, reserved: Iterable[int]) -> PortRegistry:
    """The registry, for this transaction only."""
    await _LOCK_PORTS.rows(connection, key=_LOCK)
    in_use = {port for row in await _IN_USE.rows(connection) for port in row["ports"].values()}
    return PortRegistry(in_use.union(reserved))
