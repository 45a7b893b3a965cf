"""Maintenance windows as a plan takes them: those of one pool, with its nodes."""

from __future__ import annotations

from collections.abc import Iterable

from libs.maintenance.windows import MaintenanceWindow
from services.scheduler.plan.snapshot import Maintenance, NodeSlots


def maintenance_of(
    windows: Iterable[MaintenanceWindow], pool: str, nodes: Iterable[NodeSlots]
) -> tuple[Maintenance, ...]:
    """The windows that concern nodes of the pool."""
    names = frozenset(node.name for node in nodes)
    found = (
        (window, names if window.pool else names.intersection(window.nodes))
        for window in windows
        if window.pool in ("", pool)
    )
    return tuple(
        Maintenance(
            nodes=closed,
            starts_at=window.starts_at,
            ends_at=window.ends_at,
            text=window.sentence_of(closed),
        )
        for window, closed in found
        if closed
    )
