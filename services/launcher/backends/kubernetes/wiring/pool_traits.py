"""What all tasks of a pool have in common: from configuration, and from the release of Kubernetes it runs on."""

from __future__ import annotations

from typing import Final

from services.launcher.backends.kubernetes.client.connection import Version
from services.launcher.backends.kubernetes.manifests.traits import PoolTraits
from services.launcher.backends.kubernetes.wiring.configured_pool import ConfiguredPool
from services.launcher.container.settings import TaskSettings
from services.launcher.files import load_scripts

NATIVE_SIDECARS: Final[Version] = (1, 29)


def pool_traits(pool: ConfiguredPool, *, tasks: TaskSettings, version: Version, wheels: str | None) -> PoolTraits:
    """The traits of the pool. A pool's pod spec takes the place of the cluster's, kind by kind."""
    cluster, settings = pool.cluster, pool.settings
    shared = cluster.task_container_defaults
    special = pool.config.own_defaults or shared
    return PoolTraits(
        pool=pool.name,
        cluster_id=pool.cluster_id,
        namespace=pool.namespace,
        slot_type=pool.slot_kind.type,
        slot_resource=pool.slot_kind.resource,
        slot_cpu=pool.slot_kind.cpu,
        cpu_pod_spec=cluster.pod_defaults(pool.name, has_slots=False),
        gpu_pod_spec=cluster.pod_defaults(pool.name, has_slots=True),
        checkpoint_gc_pod_spec=(
            shared.checkpoint_gc_pod_spec if special.checkpoint_gc_pod_spec is None else special.checkpoint_gc_pod_spec
        ),
        security=cluster.security,
        node_rules=None if cluster.security.pod_spec == "warn" else cluster.node_rules,
        default_scheduler=settings.default_scheduler or cluster.resource_manager.default_scheduler,
        tasks=tasks,
        shipper=settings.shipper,
        task_network=settings.task_network,
        has_native_sidecars=version >= NATIVE_SIDECARS,
        wheels=wheels,
        services=settings.services,
        has_gateway=cluster.resource_manager.internal_task_gateway is not None,
        finished_job_ttl_s=settings.finished_job_ttl_s,
        scripts=load_scripts(),
    )
