"""Finds queue policies that pools ask for and the planner does not apply, for administrators to know. Pure."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from libs.cluster.config import ClusterConfig, PoolConfig

APPLIES: Final = "priority, and who came first among equals; what runs is not preempted"


class Shortfall(Struct, frozen=True):
    pool: str
    asks_for: str
    """As it is written in its ``scheduler`` section."""


def shortfalls(cluster: ClusterConfig) -> tuple[Shortfall, ...]:
    """Pools with a policy in whose place ``APPLIES`` holds, in their order."""
    asked = ((pool, _asked_for(cluster, pool)) for pool in cluster.resource_pools)
    return tuple(Shortfall(pool.pool_name, asks_for) for pool, asks_for in asked if asks_for)


def _asked_for(cluster: ClusterConfig, pool: PoolConfig) -> str:
    scheduler = cluster.scheduler_of(pool)
    if scheduler.type == "fair_share":
        return "type: fair_share"
    return "preemption: true" if scheduler.preemption else ""
