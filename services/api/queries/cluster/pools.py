"""Resource pools: what the configuration says of them, joined with what their launchers publish. Pure.

Source: docs/reference/scheduling.md 11.4, the column "correct".
"""

from __future__ import annotations

from typing import Final

from libs.cluster.config import ClusterConfig, PoolConfig
from libs.events.capacity import PoolCapacity
from services.api.queries.cluster.agents import DEVICE_TYPES, Overrides, is_available
from services.api.wire.cluster.pools import (
    FittingPolicy,
    PoolDetail,
    PoolType,
    PrioritySchedulerDetail,
    QueueStats,
    ResourcePool,
    SchedulerType,
)

_SCHEDULERS: Final = {
    "priority": SchedulerType.PRIORITY,
    "fair_share": SchedulerType.FAIR_SHARE,
    "round_robin": SchedulerType.ROUND_ROBIN,
    # Clients know no word for it; its queue is a line, as that of priorities is.
    "fifo": SchedulerType.PRIORITY,
    "kubernetes": SchedulerType.KUBERNETES,
}


def wire_pool(
    config: PoolConfig,
    cluster: ClusterConfig,
    capacity: PoolCapacity | None,
    overrides: Overrides,
    stats: QueueStats,
) -> ResourcePool:
    """``capacity`` None is a pool whose launcher was not seen: it has nothing."""
    manager = cluster.resource_manager
    scheduler = cluster.scheduler_of(config)
    on_kubernetes = manager.is_kubernetes
    nodes = capacity.nodes if capacity else ()
    priority_scheduler = PrioritySchedulerDetail(
        preemption=scheduler.preemption, default_priority=cluster.default_priority(config.pool_name)
    )
    return ResourcePool(
        name=config.pool_name,
        description=config.description,
        type=PoolType.K8S if on_kubernetes else PoolType.STATIC,
        num_agents=len(nodes),
        slots_available=sum(node.slots for node in nodes if is_available(node, overrides)),
        slots_used=sum(
            device.allocation is not None and not device.foreign for node in nodes for device in node.devices
        ),
        slot_type=DEVICE_TYPES[capacity.slot_type if capacity else cluster.slot_type],
        aux_container_capacity=len(nodes) * config.max_aux_containers_per_agent,
        aux_containers_running=sum(len(node.aux_containers) for node in nodes),
        default_compute_pool=config.pool_name == manager.default_compute_resource_pool,
        default_aux_pool=config.pool_name == manager.default_aux_resource_pool,
        slots_per_agent=_slots_per_agent(config, cluster, capacity),
        aux_container_capacity_per_agent=config.max_aux_containers_per_agent,
        scheduler_type=_SCHEDULERS[scheduler.type],
        scheduler_fitting_policy=_fitting(scheduler.fitting_policy, on_kubernetes=on_kubernetes),
        location="n/a" if on_kubernetes else "on-prem",
        details=PoolDetail(priority_scheduler=priority_scheduler) if scheduler.type == "priority" else PoolDetail(),
        stats=stats,
        resource_manager_metadata=manager.metadata,
        cluster_name=manager.cluster_name,
    )


def _slots_per_agent(config: PoolConfig, cluster: ClusterConfig, capacity: PoolCapacity | None) -> int:
    """Slots that fit into one pod."""
    limit = cluster.max_slots_per_pod(config.pool_name)
    return limit if limit is not None else capacity.max_slots_per_pod if capacity else 0


def _fitting(policy: str, *, on_kubernetes: bool) -> FittingPolicy:
    if on_kubernetes:
        return FittingPolicy.KUBERNETES
    return FittingPolicy.WORST if policy == "worst" else FittingPolicy.BEST
