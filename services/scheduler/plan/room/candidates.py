"""Nodes that an autoscaler would rather take away: they are the last choice, so that they stay unused and go.

Where there is no room elsewhere they are used, which keeps them: that is sooner than a new node, and costs no more.
"""

from __future__ import annotations

from collections.abc import Iterable

from services.scheduler.plan.nodes.taints import DELETION_CANDIDATE
from services.scheduler.plan.snapshot import NodeSlots


def deletion_candidates(nodes: Iterable[NodeSlots]) -> frozenset[str]:
    """Their names."""
    return frozenset(
        node.name
        for node in nodes
        if node.shaped is not None and any(taint.key == DELETION_CANDIDATE for taint in node.shaped.shape.taints)
    )
