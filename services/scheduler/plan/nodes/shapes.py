"""Shapes of nodes: what many nodes of a cluster have in common, as far as pods may ask for it.

A cluster has thousands of nodes and a few dozen shapes, so a plan asks each shape once what it can run.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from services.scheduler.plan.nodes.amounts import Amounts, added
from services.scheduler.plan.nodes.taints import NodeTaint


class NodeShape(Struct, frozen=True, kw_only=True, gc=False, cache_hash=True):
    labels: tuple[tuple[str, str], ...] = ()
    """That all nodes of the shape have, by key."""
    taints: tuple[NodeTaint, ...] = ()
    unschedulable: bool = False
    """Cordoned."""
    ready: bool = True
    bad: tuple[str, ...] = ()
    """Conditions and taints of the node that the pool's configuration excludes, whatever pods tolerate."""
    allocatable: Amounts | None = None
    """What pods may request together at least, ``pods`` included. None where nobody counts it: any pod fits then."""
    offers_claims_only: bool = False
    """Its devices are given out by Dynamic Resource Allocation only, so that no extended resource counts them."""
    known: bool = True
    """Whether anything is known of it. Nothing is held against a node of which nothing is."""


UNKNOWN: Final = NodeShape(known=False)


class ShapedNode(Struct, frozen=True, kw_only=True, gc=False):
    name: str
    shape: NodeShape
    labels: tuple[tuple[str, str], ...] = ()
    """Those of its own, which take the place of the shape's."""
    spare: Amounts = ()
    """What it has beyond ``allocatable`` of its shape, which is rounded down."""
    foreign: Amounts = ()
    """Requested there by pods that are of no task of the pool, ``pods`` included."""

    def taken(self, ours: Amounts = ()) -> Amounts:
        """What is not to be had of ``allocatable`` of its shape, when tasks of the pool request ``ours`` there; below 0
        where the node has more."""
        return added(self.foreign, ours, self.empty)

    @property
    def empty(self) -> Amounts:
        """``taken`` of the node without any pod."""
        return tuple((name, -amount) for name, amount in self.spare)


class ShapeTable:
    """Gives equal shapes one object, so that comparing them is comparing identities."""

    def __init__(self) -> None:
        self._shapes: dict[NodeShape, NodeShape] = {}

    def intern(self, shape: NodeShape) -> NodeShape:
        return self._shapes.setdefault(shape, shape)

    def __len__(self) -> int:
        return len(self._shapes)
