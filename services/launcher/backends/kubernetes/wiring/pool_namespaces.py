"""The namespaces of a pool, each of which tells the observers what happens in it while it is open."""

from __future__ import annotations

from collections.abc import Callable

from services.launcher.backends.kubernetes.allocations.launch_record import LaunchRecord
from services.launcher.backends.kubernetes.background import Background
from services.launcher.backends.kubernetes.client.api import KubeApi, Refused
from services.launcher.backends.kubernetes.namespaces.informers import NamespaceInformers
from services.launcher.backends.kubernetes.namespaces.lifecycle import Namespaces
from services.launcher.backends.kubernetes.namespaces.wheels import Wheels
from services.launcher.backends.kubernetes.wiring.configured_pool import ConfiguredPool
from services.launcher.backends.kubernetes.wiring.observers import Observers


def namespaces_of(
    pool: ConfiguredPool,
    api: KubeApi,
    *,
    observers: Observers,
    launch_record: LaunchRecord,
    wheels: Wheels,
    background: Background,
) -> Namespaces:
    """None of them is open yet."""

    def informers_of(namespace: str, refused: Callable[[Refused], None]) -> NamespaceInformers:
        return NamespaceInformers(
            api,
            namespace=namespace,
            launcher=pool.launcher,
            tracker=observers.tracker,
            capacity_tracker=observers.capacity_tracker,
            events=observers.events,
            background=background,
            refused=refused,
        )

    return Namespaces(
        api,
        own=pool.namespace,
        launcher=pool.launcher,
        make_informers=informers_of,
        tracker=observers.tracker,
        capacity_tracker=observers.capacity_tracker,
        launch_record=launch_record,
        wheels=wheels,
        background=background,
        idle_s=pool.settings.namespace_idle_s,
        former=[
            LaunchRecord(api, namespace=each, pool=pool.name, cluster_id=pool.cluster_id)
            for each in pool.former_namespaces
        ],
    )
