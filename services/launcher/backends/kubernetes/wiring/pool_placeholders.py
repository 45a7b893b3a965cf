"""The placeholders of a pool, in its own namespace; those of tasks in other namespaces are there, too."""

from __future__ import annotations

from libs.clock import Clock
from libs.cluster.growth import PAUSE_IMAGE
from services.launcher.backends.kubernetes.allocations.tracking import Tracker
from services.launcher.backends.kubernetes.client.api import KubeApi
from services.launcher.backends.kubernetes.creation.priority_classes import PriorityClasses
from services.launcher.backends.kubernetes.placeholders.holding import Placeholders
from services.launcher.backends.kubernetes.placeholders.manifest import PlaceholderTraits
from services.launcher.backends.kubernetes.wiring.configured_pool import ConfiguredPool


def placeholders_of(
    pool: ConfiguredPool, api: KubeApi, *, tracker: Tracker, classes: PriorityClasses, clock: Clock
) -> Placeholders:
    """None is there yet, but for those of a launcher before this one."""
    growth = pool.config.growth
    return Placeholders(
        api,
        traits=PlaceholderTraits(
            pool=pool.name, cluster_id=pool.cluster_id, image=growth.image if growth is not None else PAUSE_IMAGE
        ),
        config=growth,
        namespaces=(pool.namespace, *pool.former_namespaces),
        nodes=lambda: tracker.nodes,
        priority_class=classes.of_placeholders,
        clock=clock,
    )
