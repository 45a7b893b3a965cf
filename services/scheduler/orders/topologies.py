"""What allocations ask of the topology of their pool, and where its nodes are, as plans take it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from libs.cluster.config import TopologyConfig
from libs.shapes.topology import PREFERRED, REQUIRED
from services.scheduler.plan.nodes.shapes import ShapedNode
from services.scheduler.plan.topology.levels import TopologyRequest

_KINDS: Final = 1000


def topology_of(said: Mapping[str, str] | None, pool: TopologyConfig | None) -> TopologyRequest | None:
    """What is asked for by ``resources.topology`` of a configuration or, where it says nothing, by the pool."""
    default = None if pool is None else pool.default
    preferred, required = (default.preferred, default.required) if default is not None else ("", "")
    if said:
        preferred, required = said.get(PREFERRED, ""), said.get(REQUIRED, "")
    level = required or preferred
    return _request(level, required=bool(required)) if level else None


@lru_cache(_KINDS)
def _request(level: str, *, required: bool) -> TopologyRequest:
    """Equal ones are one object, which plans compare quickly."""
    return TopologyRequest(level, required)


def domains_of_nodes(nodes: Mapping[str, ShapedNode], levels: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """The values of the labels of each node, "" where it has none; nothing without levels."""
    if not levels:
        return {}
    return {name: _values(node, levels) for name, node in nodes.items()}


def _values(node: ShapedNode, levels: Sequence[str]) -> tuple[str, ...]:
    labels = {**dict(node.shape.labels), **dict(node.labels)}
    return tuple(labels.get(level, "") for level in levels)
