"""What a pool says of the topology that work asks for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from libs.cluster.config import ClusterConfig
from libs.errors import InvalidRequest
from libs.shapes.topology import REQUIRED


def required_level(cluster: ClusterConfig, pool_name: str, resources: Mapping[str, Any]) -> str:
    """The level that all pods of a task share a domain of, by its configuration or, where that says nothing, by its
    pool; "" where it may run anywhere."""
    if asked := resources.get("topology"):
        return str(asked.get(REQUIRED, ""))
    pool = cluster.pool(pool_name)
    topology = None if pool is None else cluster.scheduler_of(pool).topology
    return "" if topology is None else topology.default.required


def check_topology(cluster: ClusterConfig, pool_name: str, resources: Mapping[str, Any]) -> None:
    """Raises InvalidRequest when a configuration names a level that its pool does not have."""
    pool = cluster.pool(pool_name)
    for kind, level in (resources.get("topology") or {}).items():
        topology = None if pool is None else cluster.scheduler_of(pool).topology
        levels = () if topology is None else topology.levels
        if level not in levels:
            known = f"it has {', '.join(levels)}" if levels else "it has none"
            raise InvalidRequest(f"resources.topology.{kind}: resource pool {pool_name} has no level {level}; {known}")
