from __future__ import annotations

import pytest

from deploy.operations.doctor.tasks.pod_specs import check_pod_specs
from libs.cluster.config import ClusterConfig, ResourceManagerConfig, SecurityConfig
from libs.podspec import PodSpecMode


@pytest.mark.parametrize(
    ("mode", "level"), [("free", "warning"), ("warn", "warning"), ("baseline", "ok"), ("restricted", "ok")]
)
def test_who_may_ask_everything_of_nodes_is_told(mode: PodSpecMode, level: str) -> None:
    manager = ResourceManagerConfig(type="kubernetes", max_slots_per_pod=1)
    [found] = check_pod_specs(ClusterConfig(resource_manager=manager, security=SecurityConfig(pod_spec=mode)))
    assert found.level == level


def test_processes_of_a_machine_have_no_pods() -> None:
    assert check_pod_specs(ClusterConfig()) == []
