"""View of everything besides an allocation itself, at one moment: the time, and which nodes are lost."""

from __future__ import annotations

from msgspec import Struct

from services.launcher.backends.kubernetes.allocations.state.lost_nodes import LostNodes


class View(Struct, frozen=True, kw_only=True):
    now: float
    """Unix time, seconds."""
    lost: LostNodes
    stuck_grace_s: float
    """How long a pod may wait for what will probably never come."""
    gang_grace_s: float = 60.0
    """How long the pods of a gang may take until each has a node."""
