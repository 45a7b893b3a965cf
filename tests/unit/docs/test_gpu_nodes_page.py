"""What ``docs/gpu-nodes.md`` tells administrators to set has the effect that it says."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import yaml

from libs.cluster.config import SLOT_RESOURCE, ClusterConfig
from libs.podspec.reserved_labels import ALLOWED, is_reserved
from services.launcher.backends.kubernetes.capacity.node_matching import matches, pool_requirements
from services.launcher.backends.kubernetes.client.objects import Node, NodeMeta, NodeSpec, Taint
from services.launcher.backends.kubernetes.manifests.names import ALLOCATION_LABEL
from services.launcher.backends.kubernetes.manifests.priority import class_name, priority_class
from services.scheduler.plan.decisions import Wait
from services.scheduler.plan.planner import plan
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import PendingAllocation, PoolSnapshot
from tests.unit.libs.cluster.reading import read

PAGE: Final = (Path(__file__).resolve().parents[3] / "docs" / "gpu-nodes.md").read_text()
BLOCKS: Final = [yaml.safe_load(each) for each in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)]
POOLS: Final = BLOCKS[1]["resourcePools"]
POD: Final[dict[str, Any]] = POOLS[0]["task_container_defaults"]["gpu_pod_spec"]
CLUSTER: Final = msgspec.convert({"resource_manager": {"type": "kubernetes"}, "resource_pools": POOLS}, ClusterConfig)
TAINTS: Final = re.findall(r"^\| `([\w./-]+):(\w+)`[^|]*\| ([^|]+) \|$", PAGE, re.MULTILINE)
NOW: Final = datetime(2026, 1, 31, tzinfo=UTC)


def is_in_pool(*taints: Taint) -> bool:
    labels = dict(POD["spec"]["nodeSelector"])
    node = Node(metadata=NodeMeta(name="gpu-01", labels=labels), spec=NodeSpec(taints=taints))
    return matches(pool_requirements(CLUSTER, POOLS[0]["pool_name"]).gpu, node)


def test_a_node_with_the_label_and_the_taint_of_gpus_is_in_the_pool() -> None:
    assert is_in_pool(Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule"))


@pytest.mark.parametrize(("key", "effect", "said"), TAINTS)
def test_the_queue_does_with_a_tainted_node_what_the_table_says(key: str, effect: str, said: str) -> None:
    assert is_in_pool(Taint(key=key, effect=effect)) is said.startswith("goes on")


def test_the_table_has_taints_of_both_autoscalers() -> None:
    assert {key.partition("/")[0] for key, _, _ in TAINTS} > {"karpenter.sh", "ToBeDeletedByClusterAutoscaler"}


def test_users_may_set_the_annotations_too() -> None:
    annotations = POD["metadata"]["annotations"]
    assert [key for key in annotations if is_reserved(key) and key not in ALLOWED] == []
    assert all(f"{key}: " in PAGE for key in annotations)


def test_slots_have_the_names_of_the_page() -> None:
    assert {f"`{name}`" for name in SLOT_RESOURCE.values() if "/" in name} <= set(re.findall(r"`[\w./]+`", PAGE))


def test_a_pool_may_name_another_resource() -> None:
    manager = {"type": "kubernetes", "max_slots_per_pod": 8}
    config, _ = read({"resource_manager": manager, "resource_pools": BLOCKS[0]["resourcePools"]})
    named = config.slot_resource("small")
    assert named not in SLOT_RESOURCE.values()
    assert f"`{named}`" in PAGE


def test_a_pool_without_nodes_has_the_reason_of_the_page() -> None:
    request = PendingAllocation(allocation="1", job="1", pods=(1,), priority=50, submitted_at=NOW, requested_at=NOW)
    [decision] = plan(PoolSnapshot(nodes=(), pending=(request,))).decisions
    assert decision == Wait("1", WaitReason.TOO_LARGE, "needs 1 slot; there is no node")
    assert f'"{WaitReason.TOO_LARGE}"' in PAGE


def test_tasks_bear_the_label_that_the_operator_waits_for() -> None:
    assert f"podSelector: {ALLOCATION_LABEL}`" in PAGE


def test_priority_classes_are_as_the_page_says() -> None:
    made = priority_class(1)
    assert made["value"] > 0
    assert f"preemptionPolicy: {made['preemptionPolicy']}" in PAGE
    assert f"`{class_name(50)}`" in PAGE
