"""Zones and racks of the nodes of the planner's benchmark, and gangs that are to be in one of them."""

from __future__ import annotations

import random
from typing import Final

import msgspec

from services.scheduler.plan.snapshot import PoolSnapshot
from services.scheduler.plan.topology.levels import TopologyRequest

LEVELS: Final = ("topology.kubernetes.io/zone", "example.com/rack", "kubernetes.io/hostname")
ZONES: Final = 4
IN_RACK: Final = 16
"""Nodes."""
ASKED: Final = tuple(TopologyRequest(level, required) for level in LEVELS[:2] for required in (True, False))


def with_racks(pool: PoolSnapshot) -> PoolSnapshot:
    """``pool`` in which every gang asks for a rack or a zone, half of them at all costs."""
    rng = random.Random(5)
    nodes = tuple(
        msgspec.structs.replace(
            node, domains=(f"zone{number // IN_RACK % ZONES}", f"rack{number // IN_RACK}", node.name)
        )
        for number, node in enumerate(pool.nodes or ())
    )
    pending = tuple(
        msgspec.structs.replace(one, topology=rng.choice(ASKED)) if len(one.pods) > 1 else one for one in pool.pending
    )
    return msgspec.structs.replace(pool, nodes=nodes, pending=pending, levels=LEVELS)
