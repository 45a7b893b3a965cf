"""Nodes that several pools share: who of the other pools holds, or is about to get, which of their slots.

What a launcher reports of other pools is as old as the pods that it has seen. Rows know what was given a moment ago, so
plans of pools that share nodes follow one another, by an advisory lock, and go by the rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from typing import Any, Final

from msgspec import Struct

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from libs.events.capacity import NodeCapacity, PoolCapacity
from services.scheduler.allocations.pod_sizes import held_pods
from services.scheduler.queue.moving.moves import COMES_BACK_WITHIN

SharedNodes = Mapping[str, Set[str]]
"""By the name of the other pool, the nodes that it shares."""

LOCK: Final = 0x5E50_1183
"""Advisory lock of plans of pools that share nodes; before that of the pool."""
_LOCK: Final = PreparedStatement("SELECT pg_advisory_xact_lock(:key::bigint)")
_HELD: Final = PreparedStatement("""
    SELECT a.pool, a.allocation_id, a.slots, a.num_pods, a.places, a.pods,
           a.preempted_at IS NOT NULL OR a.killed_at IS NOT NULL AS leaving
    FROM allocations a
    WHERE a.pool = ANY(:pools) AND a.released_at IS NULL AND a.assigned_at IS NOT NULL AND a.slots > 0
""")
_NOMINATED: Final = PreparedStatement("""
    SELECT q.pool, q.nominated
    FROM queue_states q JOIN allocations a ON a.allocation_id = q.allocation_id
    WHERE q.pool = ANY(:pools) AND q.nominated <> '[]' AND a.released_at IS NULL AND a.assigned_at IS NULL
    UNION ALL
    SELECT m.pool, m.places
    FROM consolidation_moves m JOIN allocations a ON a.allocation_id = m.allocation_id
    WHERE m.pool = ANY(:pools) AND m.settled_at IS NULL
      AND (a.released_at IS NULL OR a.released_at > now() - make_interval(secs => :returns_within_s))
      AND NOT EXISTS (
        SELECT FROM allocations n
        WHERE n.task_id = m.task_id AND n.requested_at > m.moved_at AND n.assigned_at IS NOT NULL
      )
""")


class Lent(Struct, frozen=True):
    """Slots of other pools on the nodes of one."""

    by_node: Mapping[str, int] = {}
    allocations: Set[str] = frozenset()
    """Whose slots are among them, wherever their pods are."""

    def on(self, node: NodeCapacity) -> int:
        """Slots that others hold of ``node``; of allocations that no row knows, what its launcher reports."""
        unknown = sum(
            device.foreign and device.allocation is not None and device.allocation not in self.allocations
            for device in node.devices
        )
        return self.by_node.get(node.name, 0) + unknown


NOTHING_LENT: Final = Lent()


def shared_nodes(mine: PoolCapacity, capacities: Iterable[PoolCapacity]) -> SharedNodes:
    """The nodes that pools of the same cluster have beside ``mine``.

    A node of another cluster may have the same name, but was registered at another time. Machines with processes share
    no slots, whatever they are called.
    """
    if mine.backend != "kubernetes":
        return {}
    own = {(node.name, node.registered_at) for node in mine.nodes if node.registered_at}
    found: dict[str, Set[str]] = {}
    for other in capacities:
        if other.pool == mine.pool or other.backend != mine.backend:
            continue
        common = frozenset(node.name for node in other.nodes if (node.name, node.registered_at) in own)
        if common:
            found[other.pool] = common
    return found


async def lock_shared_nodes(connection: Connection) -> None:
    """Nobody else plans for nodes that pools share until the transaction ends."""
    await _LOCK.rows(connection, key=LOCK)


async def load_lent(connection: Connection, shared: SharedNodes) -> Lent:
    """What other pools hold of the nodes that they share, and what is kept there for those that have preempted others
    or were moved.

    Who was preempted leaves the place to whom it was taken for, which counts once.
    """
    if not shared:
        return NOTHING_LENT
    pools = {"pools": sorted(shared)}
    held, leaving = Counter[str](), defaultdict[str, Counter[str]](Counter)
    rows = await _HELD.rows(connection, **pools)
    for row in rows:
        for node, slots in held_pods(row):
            if node in shared[row["pool"]]:
                held[node] += slots
                leaving[row["pool"]][node] += slots if row["leaving"] else 0
    kept = await _NOMINATED.rows(connection, **pools, returns_within_s=COMES_BACK_WITHIN.total_seconds())
    for pool, nominated in _nominated(kept).items():
        for node, slots in nominated.items():
            if node in shared[pool]:
                held[node] += max(slots - leaving[pool][node], 0)
    return Lent(held, frozenset(row["allocation_id"] for row in rows))


def _nominated(rows: Iterable[Mapping[Any, Any]]) -> Mapping[str, Counter[str]]:
    """Slots by pool and node."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        for place in row["nominated"]:
            found[row["pool"]][place["node"]] += place["slots"]
    return found
