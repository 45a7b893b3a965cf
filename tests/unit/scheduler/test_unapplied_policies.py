"""What administrators are told of policies that are written down and do not apply."""

from __future__ import annotations

from libs.cluster.config import ClusterConfig, PoolConfig, ResourceManagerConfig, SchedulerConfig
from services.scheduler.unapplied_policies import Shortfall, shortfalls


def test_pools_whose_policy_does_not_apply_are_named() -> None:
    cluster = ClusterConfig(
        resource_manager=ResourceManagerConfig(scheduler=SchedulerConfig(preemption=True)),
        resource_pools=(
            PoolConfig(pool_name="inherits"),
            PoolConfig(pool_name="plain", scheduler=SchedulerConfig(fitting_policy="worst")),
            PoolConfig(pool_name="shares", scheduler=SchedulerConfig(type="fair_share")),
        ),
    )
    assert shortfalls(cluster) == (
        Shortfall("inherits", "preemption: true"),
        Shortfall("shares", "type: fair_share"),
    )
    assert shortfalls(ClusterConfig()) == ()
