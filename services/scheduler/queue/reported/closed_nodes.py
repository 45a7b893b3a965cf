"""Nodes that are known to be closed before the capacity of their pool says so.

The end of a task and the state of its node reach a scheduler on different ways: when a node is drained, the end of the
pod that was evicted there comes first, and a plan would give the slots that came free to somebody else. So a launcher
says with each observation which nodes of the pods take no new ones; that counts until a capacity is there that was seen
later. Nothing tells when the capacity of a launcher that does not count was seen; it is believed, for otherwise closed
nodes would stay closed for as long as that launcher is there. Whoever starts to schedule begins with the last capacity
that was reported.
"""

from __future__ import annotations

import msgspec

from libs.events.capacity import PoolCapacity
from libs.events.observations import AllocationObserved


class ClosedNodes:
    def __init__(self) -> None:
        self._closed: dict[str, dict[str, int]] = {}
        """By pool and name: the largest revision of an observation that said so."""

    def note(self, seen: AllocationObserved) -> None:
        """Take in an observation, whether it is new or not."""
        if seen.closed_nodes:
            nodes = self._closed.setdefault(seen.pool, {})
            for node in seen.closed_nodes:
                nodes[node] = max(nodes.get(node, 0), seen.revision)

    def has_any(self, pool: str) -> bool:
        """Whether nodes of ``pool`` were closed after the last capacity that was asked about."""
        return bool(self._closed.get(pool))

    def without_closed(self, capacity: PoolCapacity) -> PoolCapacity:
        """The capacity without the nodes that were closed after it was seen; forgets what it says itself."""
        nodes = self._closed.get(capacity.pool)
        if not nodes or not capacity.revision:
            return capacity
        closed = {node: revision for node, revision in nodes.items() if revision > capacity.revision}
        self._closed[capacity.pool] = closed
        if not closed:
            return capacity
        return msgspec.structs.replace(
            capacity,
            nodes=tuple(
                msgspec.structs.replace(node, enabled=False) if node.name in closed else node for node in capacity.nodes
            ),
        )
