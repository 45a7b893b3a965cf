"""Time limits that a pool sets: what holds for work that names none, and the longest that it may name. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from libs.cluster.config import ClusterConfig
from libs.errors import InvalidRequest
from libs.shapes.shape import Object
from libs.shapes.time_limits import limit_in_words


def limit_in_pool(cluster: ClusterConfig, pool_name: str, asked: int | None) -> int | None:
    """Seconds that work may run which asks for ``asked``, or asks for nothing; None is for ever.

    Raises InvalidRequest for more than the pool allows.
    """
    pool = cluster.pool(pool_name)
    if pool is None:
        return asked
    most = pool.max_time_limit_s
    if asked is None:
        return most if pool.default_time_limit_s is None else pool.default_time_limit_s
    if most is not None and asked > most:
        raise InvalidRequest(
            f"resources.time_limit ({limit_in_words(asked)}) is above the limit of resource pool {pool_name} "
            f"(max_time_limit: {limit_in_words(most)})"
        )
    return asked


def with_time_limit(cluster: ClusterConfig, pool_name: str, resources: Mapping[str, Any]) -> Object:
    """The resources of a complete configuration, with the time limit that holds; without one where none does.

    Raises InvalidRequest for more than the pool allows.
    """
    limit = limit_in_pool(cluster, pool_name, resources.get("time_limit"))
    others = {key: value for key, value in resources.items() if key != "time_limit"}
    return others if limit is None else {**others, "time_limit": limit}
