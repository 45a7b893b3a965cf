"""What a resource manager of type kubernetes is told: slots, pods and priorities."""

from __future__ import annotations

from typing import Any

import pytest

from libs.cluster.config import ClusterConfig
from tests.unit.libs.cluster.reading import assert_refused, kubernetes, read

PER_POD = (
    "must provide exactly one of resource_manager.max_slots_per_pod and "
    "task_container_defaults.kubernetes.max_slots_per_pod"
)
IN_DEFAULTS: dict[str, Any] = {"task_container_defaults": {"kubernetes": {"max_slots_per_pod": 2}}}


@pytest.mark.parametrize(
    ("manager", "slot_type"),
    [
        ({"type": "kubernetes"}, "cuda"),
        ({"type": "kubernetes", "slot_type": "gpu"}, "cuda"),
        ({"type": "kubernetes", "slot_type": "rocm"}, "rocm"),
        ({"type": "kubernetes", "slot_type": "cpu", "slot_resource_requests": {"cpu": 0.5}}, "cpu"),
        ({"type": "kubernetes", "slot_type": None}, "cuda"),
        ({"type": "process"}, "cpu"),
        ({}, "cpu"),
    ],
)
def test_slots_are_gpus_on_kubernetes_unless_said_otherwise(manager: dict[str, Any], slot_type: str) -> None:
    limit = {"max_slots_per_pod": 1} if manager.get("type") == "kubernetes" else {}
    assert read({"resource_manager": {**manager, **limit}})[0].slot_type == slot_type


def test_slots_of_another_kind_are_refused() -> None:
    assert_refused(kubernetes(slot_type="tpu"), "slot_type must be cuda, cpu, or rocm")


@pytest.mark.parametrize("cpu", [{}, {"slot_resource_requests": {"cpu": 0}}, {"slot_resource_requests": {"cpu": -1}}])
def test_slots_of_cores_say_how_many(cpu: dict[str, Any]) -> None:
    assert_refused(kubernetes(slot_type="cpu", **cpu), "slot_resource_requests.cpu must be > 0")


def test_a_slot_is_the_resource_that_its_pool_names_or_that_of_the_slot_type() -> None:
    pools = [{"pool_name": "default"}, {"pool_name": "small", "slot_resource": "nvidia.com/mig-1g.5gb"}]
    config = read({**kubernetes(), "resource_pools": pools})[0]
    assert config.slot_resource("default") == "nvidia.com/gpu"
    assert config.slot_resource("small") == "nvidia.com/mig-1g.5gb"
    assert read(kubernetes(slot_type="rocm"))[0].slot_resource("default") == "amd.com/gpu"


NO_RESOURCE = [
    "cpu",
    "memory",
    "/gpu",
    "nvidia.com/",
    "Nvidia.com/gpu",
    "kubernetes.io/batteries",
    "a.kubernetes.io/b",
    "a/b/c",
]


@pytest.mark.parametrize("name", [*NO_RESOURCE, "a b"])
def test_the_resource_of_slots_is_an_extended_one(name: str) -> None:
    pools = [{"pool_name": "default", "slot_resource": name}]
    said = f"resource_pools[default].slot_resource: {name!r} is no extended resource, such as nvidia.com/mig-1g.5gb"
    assert_refused({**kubernetes(), "resource_pools": pools}, said)


@pytest.mark.parametrize("manager", [{"type": "process"}, {"type": "kubernetes", "slot_type": "cpu"}])
def test_only_devices_of_kubernetes_have_a_resource(manager: dict[str, Any]) -> None:
    more = {"max_slots_per_pod": 4, "slot_resource_requests": {"cpu": 1}} if manager["type"] == "kubernetes" else {}
    pools = [{"pool_name": "default", "slot_resource": "nvidia.com/gpu"}]
    said = "resource_pools[default].slot_resource: only a slot that is a device of a Kubernetes node has a resource"
    assert_refused({"resource_manager": {**manager, **more}, "resource_pools": pools}, said)


def test_slots_of_a_pod_are_limited_exactly_once() -> None:
    assert read(kubernetes())[0].max_slots_per_pod("default") == 4
    assert read({"resource_manager": {"type": "kubernetes"}, **IN_DEFAULTS})[0].max_slots_per_pod("default") == 2
    assert_refused({"resource_manager": {"type": "kubernetes"}}, PER_POD)
    assert_refused({**kubernetes(), **IN_DEFAULTS}, PER_POD)
    assert read({"resource_manager": {"type": "process"}})[0].max_slots_per_pod("default") is None


def test_a_pool_has_a_limit_of_its_own_on_top() -> None:
    pool = {"pool_name": "default", "task_container_defaults": {"kubernetes": {"max_slots_per_pod": 8}}}
    assert read({**kubernetes(), "resource_pools": [pool]})[0].max_slots_per_pod("default") == 8
    assert_refused({"resource_manager": {"type": "kubernetes"}, "resource_pools": [pool]}, PER_POD)
    pool["task_container_defaults"] = {"kubernetes": {"max_slots_per_pod": -2}}
    assert_refused({**kubernetes(), "resource_pools": [pool]}, "max_slots_per_pod must be >= 0 got -2")


def test_no_limit_is_below_zero() -> None:
    assert read(kubernetes(max_slots_per_pod=0))[0].max_slots_per_pod("default") == 0
    assert_refused(kubernetes(max_slots_per_pod=-1), "max_slots_per_pod must be >= 0 got -1")
    below = {"task_container_defaults": {"kubernetes": {"max_slots_per_pod": -3}}}
    assert_refused({"resource_manager": {"type": "kubernetes"}, **below}, "max_slots_per_pod must be >= 0 got -3")


def pool_with(scheduler: dict[str, Any] | None) -> dict[str, Any]:
    return {"resource_pools": [{"pool_name": "default", "scheduler": scheduler}]}


@pytest.mark.parametrize(
    ("of_manager", "of_pool", "on_kubernetes", "elsewhere"),
    [
        (None, None, 50, 42),
        ({"type": "priority"}, None, 50, 42),
        ({"default_priority": 7}, None, 7, 7),
        (None, {"fitting_policy": "worst"}, 50, 42),
        # A pool with a scheduler of its own takes nothing from the resource manager's.
        ({"default_priority": 7}, {"type": "priority"}, 50, 42),
        ({"default_priority": 7}, {"default_priority": 9}, 9, 9),
    ],
)
def test_priority_of_a_job_that_does_not_say(
    of_manager: dict[str, Any] | None, of_pool: dict[str, Any] | None, on_kubernetes: int, elsewhere: int
) -> None:
    def found(manager: dict[str, Any]) -> tuple[int, int]:
        config: ClusterConfig = read({"resource_manager": manager, **pool_with(of_pool)})[0]
        return config.default_priority("default"), config.default_priority("no such pool")

    if_unknown = (of_manager or {}).get("default_priority")
    expected = (on_kubernetes, if_unknown or 50)
    assert found(kubernetes(scheduler=of_manager)["resource_manager"]) == expected
    assert found({"type": "process", "scheduler": of_manager}) == (elsewhere, if_unknown or 42)
