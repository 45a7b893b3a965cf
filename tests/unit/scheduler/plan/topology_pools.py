"""Pools whose nodes are in zones and racks, for properties."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from services.scheduler.plan.snapshot import PoolSnapshot
from services.scheduler.plan.topology.levels import TopologyRequest

LEVELS = ("zone", "rack")


def requests() -> st.SearchStrategy[TopologyRequest | None]:
    return st.none() | st.builds(TopologyRequest, st.sampled_from(("zone", "rack", "rack", "block")), st.booleans())


@st.composite
def placed(draw: st.DrawFn, pool: PoolSnapshot) -> PoolSnapshot:
    """``pool`` with labels of its nodes, of which some lack some, and with gangs that are to be near each other."""
    nodes = tuple(
        msgspec.structs.replace(
            node, domains=draw(st.sampled_from((("x", "a"), ("x", "b"), ("y", "a"), ("x", ""), ("", "c"), ())))
        )
        for node in pool.nodes or ()
    )
    held = [msgspec.structs.replace(one, topology=draw(requests())) for one in pool.held]
    pending = [msgspec.structs.replace(one, topology=draw(requests())) for one in pool.pending]
    return msgspec.structs.replace(pool, nodes=nodes, held=tuple(held), pending=tuple(pending), levels=LEVELS)


def is_in_one_domain(pool: PoolSnapshot, nodes: set[str], level: str) -> bool:
    """Whether all nodes have the same value of the label, and of those of wider levels."""
    if level not in LEVELS:
        return False
    place = LEVELS.index(level)
    paths = {node.name: node.domains for node in pool.nodes or ()}
    found = {paths[node][: place + 1] for node in nodes}
    return len(found) == 1 and all(len(path) > place and path[place] for path in found)
