"""Opens the Kubernetes backend of one pool: makes its parts, in the order in which they need each other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from libs.clock import Clock
from libs.cluster.config import ClusterConfig
from libs.serving.readiness import Readiness
from services.launcher.backends.kubernetes.allocations.launch_record import LaunchRecord
from services.launcher.backends.kubernetes.allocations.reactions import Reactions
from services.launcher.backends.kubernetes.allocations.teardown import Teardown
from services.launcher.backends.kubernetes.backend import KubernetesBackend
from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.cluster_admin import KubernetesClusterAdmin
from services.launcher.backends.kubernetes.creation.creation import Creation
from services.launcher.backends.kubernetes.creation.priority_classes import PriorityClasses
from services.launcher.backends.kubernetes.manifests.fluent_bit import sidecar_requests
from services.launcher.backends.kubernetes.namespaces.informers import ClusterInformers
from services.launcher.backends.kubernetes.namespaces.wheels import Wheels
from services.launcher.backends.kubernetes.settings import KubernetesSettings
from services.launcher.backends.kubernetes.wiring.configured_pool import configured_pool
from services.launcher.backends.kubernetes.wiring.leadership import leading_connection
from services.launcher.backends.kubernetes.wiring.observers import observers_of
from services.launcher.backends.kubernetes.wiring.pool_namespaces import namespaces_of
from services.launcher.backends.kubernetes.wiring.pool_placeholders import placeholders_of
from services.launcher.backends.kubernetes.wiring.pool_traits import pool_traits
from services.launcher.backends.kubernetes.wiring.settled_gateway import settled_gateway
from services.launcher.container.settings import TaskSettings
from services.launcher.container.trust import TaskTrust
from services.launcher.task_lines import Lines

log = structlog.get_logger()


@asynccontextmanager
async def open_kubernetes_backend(
    *,
    pool: str,
    settings: KubernetesSettings,
    cluster: ClusterConfig,
    tasks: TaskSettings,
    trust: TaskTrust,
    lines: Lines,
    clock: Clock,
    readiness: Readiness,
) -> AsyncIterator[KubernetesBackend]:
    """The backend of one pool for the duration of the block; tasks outlive it.

    It does not begin while another launcher acts for the pool, and when it begins, everything that exists is known,
    except in namespaces of which nothing is known yet. It is cancelled when the lease of the pool is lost, and ends
    with LeadershipLost then. ``lines`` takes what it writes into the logs of tasks, whenever that is published.
    Raises InvalidRequest for settings that cannot work, PermissionDenied when rights are missing, FailedPrecondition
    when the namespace is, and Unavailable when the API server does not answer.
    """
    own = configured_pool(pool, settings=settings, cluster=cluster)
    async with AsyncExitStack() as stack:
        api, version = await stack.enter_async_context(leading_connection(own, clock=clock, readiness=readiness))
        wheels = Wheels(api, directory=settings.wheels_dir, pool=pool, cluster_id=own.cluster_id)
        traits = pool_traits(own, tasks=tasks, version=version, wheels=wheels.name)
        background = await stack.enter_async_context(Background())
        classes = PriorityClasses(api, mode=settings.priority_classes)
        observers = observers_of(
            own,
            api,
            lines=lines,
            classes=classes,
            clock=clock,
            background=background,
            launcher_requests=sidecar_requests(traits),
        )
        tracker, capacity_tracker = observers.tracker, observers.capacity_tracker
        stack.callback(tracker.close)
        await classes.look()
        teardown = Teardown(
            api,
            tracker=tracker,
            launcher=own.launcher,
            sidecar_grace_s=settings.shipper.grace_s if traits.ships == "fluent-bit" else 0,
            log_delivery_s=settings.log_delivery_s,
        )
        background.create_task(Reactions(teardown, tracker, background).run(), name="reactions")
        launch_record = LaunchRecord(api, namespace=own.namespace, pool=pool, cluster_id=own.cluster_id)
        namespaces = namespaces_of(
            own, api, observers=observers, launch_record=launch_record, wheels=wheels, background=background
        )
        await ClusterInformers(
            api, launcher=own.launcher, capacity_tracker=capacity_tracker, background=background
        ).start()
        await namespaces.start()
        gateway = await settled_gateway(own, api, observers=observers, background=background)
        creation = Creation(
            api,
            namespaces=namespaces,
            traits=traits,
            trust=trust,
            tracker=tracker,
            priority_class_of=classes.of,
            created=lambda tracked: launch_record.add({tracked.allocation: tracked.namespace}),
            background=background,
            gateway=gateway,
        )
        for number in range(settings.creators):
            background.create_task(creation.work(), name=f"creator {number}")
        background.create_task(launch_record.run(), name="launch record")
        background.create_task(namespaces.run(), name="namespaces")
        background.create_task(classes.run(), name="priority classes")
        log.info("kubernetes.opened", server=api.host, namespace=own.namespace, version=version, launcher=own.launcher)
        yield KubernetesBackend(
            cluster_id=own.cluster_id,
            tracker=tracker,
            creation=creation,
            teardown=teardown,
            namespaces=namespaces,
            capacity_tracker=capacity_tracker,
            launch_record=launch_record,
            cluster_admin=KubernetesClusterAdmin(
                api, pool=pool, own=own.namespace, cluster_id=own.cluster_id, kind=own.slot_kind
            ),
            clock=clock,
            placeholders=placeholders_of(own, api, tracker=tracker, classes=classes, clock=clock),
            gateway=gateway,
        )
