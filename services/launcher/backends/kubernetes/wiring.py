"""Wires the Kubernetes backend of one pool: the only place where its parts are put together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

import structlog

from libs.clock import Clock
from libs.cluster.checks import check_slot_requests
from libs.cluster.config import ClusterConfig, PoolConfig
from libs.errors import InvalidRequest
from libs.serving.readiness import Readiness
from services.launcher.backends.kubernetes.allocations.launch_record import LaunchRecord
from services.launcher.backends.kubernetes.allocations.reactions import Reactions
from services.launcher.backends.kubernetes.allocations.task_log.publisher import Lines, Publish
from services.launcher.backends.kubernetes.allocations.task_log.reporters import EventReporter, Reporter
from services.launcher.backends.kubernetes.allocations.teardown import Teardown
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.backend import KubernetesBackend
from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.capacity.node_matching import pool_requirements
from services.launcher.backends.kubernetes.capacity.slots import SlotKind
from services.launcher.backends.kubernetes.capacity.tracker import CapacityTracker
from services.launcher.backends.kubernetes.client.api import Refused
from services.launcher.backends.kubernetes.client.connection import Version, check, connect, problem_of
from services.launcher.backends.kubernetes.cluster_admin import KubernetesClusterAdmin
from services.launcher.backends.kubernetes.creation.creation import Creation
from services.launcher.backends.kubernetes.creation.priority_classes import PriorityClasses
from services.launcher.backends.kubernetes.gateway.task_gateway import TaskGateway
from services.launcher.backends.kubernetes.leader_election.elector import connected_lease, leading
from services.launcher.backends.kubernetes.manifests.names import launcher_id
from services.launcher.backends.kubernetes.manifests.traits import PoolTraits
from services.launcher.backends.kubernetes.namespaces.informers import ClusterInformers, NamespaceInformers
from services.launcher.backends.kubernetes.namespaces.lifecycle import Namespaces
from services.launcher.backends.kubernetes.namespaces.wheels import Wheels
from services.launcher.backends.kubernetes.settings import KubernetesSettings
from services.launcher.container.settings import TaskSettings
from services.launcher.files import load_scripts

log = structlog.get_logger()

NATIVE_SIDECARS: Final[Version] = (1, 29)


@asynccontextmanager
async def open_kubernetes_backend(
    *,
    pool: str,
    settings: KubernetesSettings,
    cluster: ClusterConfig,
    tasks: TaskSettings,
    master_cert: bytes | None,
    publish: Publish,
    clock: Clock,
    readiness: Readiness,
) -> AsyncIterator[KubernetesBackend]:
    """The backend of one pool for the duration of the block; tasks outlive it.

    It does not begin while another launcher acts for the pool, and when it begins, everything that exists is known,
    except in namespaces of which nothing is known yet. It is cancelled when the lease of the pool is lost, and ends
    with LeadershipLost then.
    Raises InvalidRequest for settings that cannot work, PermissionDenied when rights are missing, FailedPrecondition
    when the namespace is, and Unavailable when the API server does not answer.
    """
    own = cluster.pool(pool)
    if own is None:
        raise InvalidRequest(f"the cluster configuration has no resource pool named {pool!r}")
    if not settings.cluster_id:
        raise InvalidRequest("kubernetes.cluster_id is required: the id that `det master info` shows")
    namespace = settings.namespace or own.kubernetes_namespace or cluster.resource_manager.default_namespace
    check_slot_requests(cluster.resource_manager, slots_are_cores=cluster.slot_type == "cpu")
    kind = SlotKind(type=cluster.slot_type, cpu=cluster.resource_manager.slot_resource_requests.cpu)
    launcher = launcher_id(settings.cluster_id, pool)
    async with AsyncExitStack() as stack:
        lease = await stack.enter_async_context(
            connected_lease(namespace=namespace, pool=pool, settings=settings, clock=clock)
        )
        api = await stack.enter_async_context(connect(settings, may_act=lease.may_act))
        version = await check(api, namespace, settings)
        # Whoever stands by is as ready as whoever acts: an upgrade waits for it before it ends the other one.
        readiness.register("kubernetes", partial(problem_of, api))
        await stack.enter_async_context(leading(lease))
        wheels = Wheels(api, directory=settings.wheels_dir, pool=pool, cluster_id=settings.cluster_id)
        traits = pool_traits(
            pool=own,
            cluster=cluster,
            settings=settings,
            namespace=namespace,
            kind=kind,
            tasks=tasks,
            master_cert=master_cert,
            version=version,
            wheels=wheels.name,
        )
        background = await stack.enter_async_context(Background())
        lines = Lines(publish)
        reporter = Reporter(api, lines=lines, clock=clock, background=background)
        tracker = Tracker(pool=pool, clock=clock, stuck_grace_s=settings.stuck_grace_s, listener=reporter)
        stack.callback(tracker.close)
        teardown = Teardown(
            api,
            tracker=tracker,
            launcher=launcher,
            sidecar_grace_s=settings.shipper.grace_s if traits.ships == "fluent-bit" else 0,
            log_delivery_s=settings.log_delivery_s,
        )
        capacity_tracker = CapacityTracker(
            pool=pool,
            namespace=namespace,
            cluster_id=settings.cluster_id,
            kind=kind,
            requirements=pool_requirements(cluster, pool),
            max_slots_per_pod=cluster.max_slots_per_pod(pool),
            max_aux_per_node=own.max_aux_containers_per_agent,
            assumed_slots=settings.assumed_slots,
            tracker=tracker,
            clock=clock,
        )
        classes = PriorityClasses(api, mode=settings.priority_classes)
        await classes.look()
        events = EventReporter(
            lines=lines,
            clock=clock,
            slot_type=kind.type,
            free_slots_in=capacity_tracker.free_slots_in,
            tracker=tracker,
            no_class=classes.missing,
        )
        background.create_task(Reactions(teardown, tracker, background).run(), name="reactions")
        launch_record = LaunchRecord(api, namespace=namespace, pool=pool, cluster_id=settings.cluster_id)

        def informers_of(of: str, refused: Callable[[Refused], None]) -> NamespaceInformers:
            return NamespaceInformers(
                api,
                namespace=of,
                launcher=launcher,
                tracker=tracker,
                capacity_tracker=capacity_tracker,
                events=events,
                background=background,
                refused=refused,
            )

        namespaces = Namespaces(
            api,
            own=namespace,
            launcher=launcher,
            make_informers=informers_of,
            tracker=tracker,
            capacity_tracker=capacity_tracker,
            launch_record=launch_record,
            wheels=wheels,
            background=background,
            idle_s=settings.namespace_idle_s,
        )
        await ClusterInformers(api, launcher=launcher, capacity_tracker=capacity_tracker, background=background).start()
        await namespaces.start()
        gateway = None
        if (config := cluster.resource_manager.internal_task_gateway) is not None:
            gateway = TaskGateway(
                api,
                config=config,
                launcher=launcher,
                allocations=tracker.allocations,
                say=reporter.say,
                restored=tracker.look,
            )
            if not await gateway.settle():
                background.create_task(gateway.run(), name="gateway")
        creation = Creation(
            api,
            namespaces=namespaces,
            traits=traits,
            tracker=tracker,
            priority_class_of=classes.of,
            created=lambda tracked: launch_record.add({tracked.allocation: tracked.namespace}),
            background=background,
            gateway=gateway,
        )
        for number in range(settings.creators):
            background.create_task(creation.work(), name=f"creator {number}")
        background.create_task(lines.run(), name="lines")
        background.create_task(launch_record.run(), name="launch record")
        background.create_task(namespaces.run(), name="namespaces")
        background.create_task(classes.run(), name="priority classes")
        log.info("kubernetes.opened", server=api.host, namespace=namespace, version=version, launcher=launcher)
        yield KubernetesBackend(
            cluster_id=settings.cluster_id,
            tracker=tracker,
            creation=creation,
            teardown=teardown,
            namespaces=namespaces,
            capacity_tracker=capacity_tracker,
            launch_record=launch_record,
            cluster_admin=KubernetesClusterAdmin(
                api, pool=pool, own=namespace, cluster_id=settings.cluster_id, kind=kind
            ),
            clock=clock,
            gateway=gateway,
        )


def pool_traits(
    *,
    pool: PoolConfig,
    cluster: ClusterConfig,
    settings: KubernetesSettings,
    namespace: str,
    kind: SlotKind,
    tasks: TaskSettings,
    master_cert: bytes | None,
    version: Version,
    wheels: str | None,
) -> PoolTraits:
    """What all tasks of the pool have in common. A pool's pod spec takes the place of the cluster's, kind by kind."""
    shared = cluster.task_container_defaults
    special = pool.own_defaults or shared
    return PoolTraits(
        pool=pool.pool_name,
        cluster_id=settings.cluster_id,
        namespace=namespace,
        slot_type=kind.type,
        slot_cpu=kind.cpu,
        cpu_pod_spec=shared.cpu_pod_spec if special.cpu_pod_spec is None else special.cpu_pod_spec,
        gpu_pod_spec=shared.gpu_pod_spec if special.gpu_pod_spec is None else special.gpu_pod_spec,
        default_scheduler=settings.default_scheduler or cluster.resource_manager.default_scheduler,
        tasks=tasks,
        shipper=settings.shipper,
        has_native_sidecars=version >= NATIVE_SIDECARS,
        wheels=wheels,
        services=settings.services,
        has_gateway=cluster.resource_manager.internal_task_gateway is not None,
        finished_job_ttl_s=settings.finished_job_ttl_s,
        scripts=load_scripts(),
        master_cert=master_cert,
    )
