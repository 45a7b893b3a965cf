"""Nodes that are not there yet: how many pods each would take, and how many a request needs."""

from __future__ import annotations

from typing import NamedTuple

from services.scheduler.plan.nodes.amounts import PODS, added
from services.scheduler.plan.nodes.unmet import unmet
from services.scheduler.plan.snapshot import NodeSlots, PendingAllocation, PoolSnapshot


class NewNodes(NamedTuple):
    """What a cluster is asked for."""

    nodes: int
    slots: int
    """Of each."""


def pods_on(node: NodeSlots, request: PendingAllocation, *, empty: bool = False) -> int:
    """How many pods of ``request`` have room on a node of which tasks of the pool hold nothing.

    empty  as if nobody held anything there, and it were in service
    """
    slots = request.pods[0]
    units = (node.slots - (0 if empty else node.lent)) // slots if slots else node.max_aux
    shaped, needs = node.shaped, request.needs
    if shaped is None or needs is None or not shaped.shape.known:
        return max(units, 0)
    taken = shaped.empty if empty else shaped.taken()
    if unmet(needs, shaped.shape, name=node.name, labels=shaped.labels, taken=taken) is not None:
        return 0
    if shaped.shape.allocatable is None:
        return max(units, 0)
    left = dict(added(shaped.shape.allocatable, tuple((name, -amount) for name, amount in taken)))
    wanted = (*needs.requests, (PODS, 1))
    return max(min([units, *(left.get(name, 0) // amount for name, amount in wanted if amount)]), 0)


class ExpectedNodes:
    """What nodes a pool would get: those of the template or, without one, such as it has."""

    def __init__(self, pool: PoolSnapshot) -> None:
        assert pool.growth is not None
        self._growth = pool.growth
        self._present = len(pool.nodes or ())
        self._kinds = _kinds(pool) if self._growth.template is None else [self._growth.template]

    @property
    def slots(self) -> int:
        """Of the largest of them."""
        return max((node.slots for node in self._kinds), default=0)

    def needed(self, request: PendingAllocation, pods: int, *, present: int | None = None) -> NewNodes | None:
        """The new nodes on which so many pods of ``request`` run; None where no such node would take one, or the pool
        may not have so many.

        present  nodes that the new ones come beside; None is all of the pool
        """
        found = max(((pods_on(node, request, empty=True), node.slots) for node in self._kinds), default=(0, 0))
        per_node, slots = found
        if not per_node:
            return None
        count = -(-pods // per_node)
        beside = self._present if present is None else present
        most = self._growth.max_nodes
        return None if most is not None and beside + count > most else NewNodes(count, slots)


def _kinds(pool: PoolSnapshot) -> list[NodeSlots]:
    """One of each kind of node that is in service."""
    kinds: dict[object, NodeSlots] = {}
    for node in pool.nodes or ():
        if node.available:
            shape = node.shaped.shape if node.shaped is not None else None
            kinds.setdefault((node.slots, node.max_aux, shape), node)
    return list(kinds.values())
