"""What the cluster configuration makes of a pool's launcher, before it talks to any cluster."""

from __future__ import annotations

import msgspec
import pytest

from libs.clock import SystemClock
from libs.cluster.config import ClusterConfig, ResourceManagerConfig, SlotRequests
from libs.errors import InvalidRequest
from libs.serving.readiness import Readiness
from services.launcher.backends.kubernetes.settings import KubernetesSettings
from services.launcher.backends.kubernetes.wiring.configured_pool import configured_pool
from services.launcher.backends.kubernetes.wiring.opening import open_kubernetes_backend
from services.launcher.backends.kubernetes.wiring.pool_traits import pool_traits
from services.launcher.container.settings import TaskSettings
from services.launcher.container.trust import TaskTrust
from services.launcher.task_lines import Lines


@pytest.mark.parametrize(
    ("of_cluster", "of_launcher", "scheduler"),
    [("", "", ""), ("coscheduler", "", "coscheduler"), ("", "coscheduler", "coscheduler")],
)
def test_scheduler_of_pods_is_that_of_the_launcher_or_of_the_cluster(
    of_cluster: str, of_launcher: str, scheduler: str
) -> None:
    manager = msgspec.convert({"type": "kubernetes", "default_scheduler": of_cluster}, ResourceManagerConfig)
    settings = KubernetesSettings(cluster_id="c", default_scheduler=of_launcher)
    pool = configured_pool("default", settings=settings, cluster=ClusterConfig(resource_manager=manager))
    traits = pool_traits(pool, tasks=TaskSettings(), version=(1, 34), wheels=None)
    assert traits.default_scheduler == scheduler


async def test_slots_that_are_cores_have_a_size() -> None:
    manager = ResourceManagerConfig(type="kubernetes", slot_type="cpu", slot_resource_requests=SlotRequests(cpu=0))

    with pytest.raises(InvalidRequest, match=r"^slot_resource_requests\.cpu must be > 0$"):
        async with open_kubernetes_backend(
            pool="default",
            settings=KubernetesSettings(cluster_id="c", kubeconfig="/there/is/none"),
            cluster=ClusterConfig(resource_manager=manager),
            tasks=TaskSettings(),
            trust=TaskTrust(TaskSettings()),
            lines=Lines(),
            clock=SystemClock(),
            readiness=Readiness(()),
        ):
            pass
