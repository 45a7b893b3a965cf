"""Shapes of nodes in the capacity of a pool: what nodes have in common is said once, and each refers to its shape.

Amounts are whole numbers: ``cpu`` in thousandths of a core, memory and storage in bytes, anything else in pieces.
"""

from __future__ import annotations

from msgspec import Struct


class ReportedTaint(Struct, frozen=True, kw_only=True, omit_defaults=True):
    key: str
    value: str = ""
    effect: str = "NoSchedule"


class ReportedShape(Struct, frozen=True, kw_only=True, omit_defaults=True):
    labels: dict[str, str] = {}
    """That all nodes of the shape have."""
    name_labels: tuple[str, ...] = ()
    """Keys of labels whose value is the name of the node, as ``kubernetes.io/hostname`` mostly is."""
    taints: tuple[ReportedTaint, ...] = ()
    unschedulable: bool = False
    """Cordoned."""
    ready: bool = True
    bad: tuple[str, ...] = ()
    """Conditions and taints that the pool's configuration excludes."""
    allocatable: dict[str, int] | None = None
    """What pods may request together; memory and storage are rounded down, and the node says what it has beyond. None
    where nobody counts it."""
    claims_only: bool = False
    """Its devices are offered by Dynamic Resource Allocation only, so that no extended resource counts them."""
