"""The task gateway of a pool, where the cluster configuration names one."""

from __future__ import annotations

from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.client.api import KubeApi
from services.launcher.backends.kubernetes.gateway.task_gateway import TaskGateway
from services.launcher.backends.kubernetes.wiring.configured_pool import ConfiguredPool
from services.launcher.backends.kubernetes.wiring.observers import Observers


async def settled_gateway(
    pool: ConfiguredPool, api: KubeApi, *, observers: Observers, background: Background
) -> TaskGateway | None:
    """Its listeners are those of the allocations that are tracked, or will be as soon as it can be reached."""
    config = pool.cluster.resource_manager.internal_task_gateway
    if config is None:
        return None
    gateway = TaskGateway(
        api,
        config=config,
        launcher=pool.launcher,
        allocations=observers.tracker.allocations,
        say=observers.reporter.say,
        restored=observers.tracker.look,
    )
    if not await gateway.settle():
        background.create_task(gateway.run(), name="gateway")
    return gateway
