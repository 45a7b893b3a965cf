"""What the pods of a task need of nodes, read from the merged pod spec."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from libs.cluster.config import ClusterConfig
from services.scheduler.orders.pod_requirements import pod_requirements, task_requirements
from services.scheduler.plan.nodes.requirements import PodRequirements, SlotResource
from services.scheduler.plan.nodes.taints import Toleration

GPU, CPU = SlotResource("nvidia.com/gpu"), SlotResource("cpu", 500)
MIG = SlotResource("nvidia.com/mig-1g.5gb")
MIB = 1 << 20


def container(name: str = "other", *, restart: str | None = None, **resources: dict[str, str | bool]) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "resources": resources}
    return made if restart is None else {**made, "restartPolicy": restart}


MAIN = "determined-container"

REQUESTS = [
    ("slots alone", {}, 8, GPU, {"nvidia.com/gpu": 8}),
    ("a MIG profile is a slot like any other", {}, 2, MIG, {"nvidia.com/mig-1g.5gb": 2}),
    ("cores of slots", {}, 3, CPU, {"cpu": 1500}),
    ("nothing at all", {}, 0, GPU, {}),
    (
        "users do not change their slots",
        {"containers": [container(MAIN, requests={"nvidia.com/gpu": "1", "memory": "1Gi"})]},
        4,
        GPU,
        {"nvidia.com/gpu": 4, "memory": 1024 * MIB},
    ),
    (
        "or get some where they have none",
        {"containers": [container(MAIN, limits={"nvidia.com/gpu": "1", "cpu": "2"})]},
        0,
        GPU,
        {"cpu": 2000},
    ),
    (
        "cores of a task without slots are the user's",
        {"containers": [container(MAIN, requests={"cpu": "250m"})]},
        0,
        CPU,
        {"cpu": 250},
    ),
    (
        "what is no amount counts as if it were not there",
        {"containers": [container(MAIN, limits={"cpu": "2"}, requests={"cpu": True, "memory": False})]},
        1,
        GPU,
        {"nvidia.com/gpu": 1, "cpu": 2000},
    ),
    (
        "limits count where nothing is requested",
        {"containers": [container(MAIN, limits={"memory": "64Mi", "cpu": "2"}, requests={"cpu": "1"})]},
        1,
        GPU,
        {"nvidia.com/gpu": 1, "cpu": 1000, "memory": 64 * MIB},
    ),
    (
        "other containers are added, with devices of their own",
        {"containers": [container(requests={"memory": "10Mi", "nvidia.com/gpu": "1"}), container(MAIN)]},
        1,
        GPU,
        {"nvidia.com/gpu": 2, "memory": 10 * MIB},
    ),
    (
        "the largest init container, where it is larger than what runs",
        {
            "initContainers": [container(requests={"memory": "8Mi"}), container(requests={"memory": "6Mi"})],
            "containers": [container(requests={"memory": "5Mi", "cpu": "1"})],
        },
        0,
        GPU,
        {"memory": 8 * MIB, "cpu": 1000},
    ),
    (
        "sidecars run beside the init containers after them, and beside the task",
        {
            "initContainers": [
                container(requests={"memory": "7Mi"}),
                container(requests={"memory": "2Mi"}, restart="Always"),
                container(requests={"memory": "6Mi"}),
            ],
            "containers": [container(requests={"memory": "5Mi"})],
        },
        0,
        GPU,
        {"memory": 8 * MIB},
    ),
    (
        "overhead comes on top",
        {"overhead": {"memory": "120Mi", "cpu": "250m"}, "containers": [container(requests={"memory": "8Mi"})]},
        0,
        GPU,
        {"memory": 128 * MIB, "cpu": 250},
    ),
    (
        "what is requested for the pod as a whole replaces what its containers request",
        {
            "resources": {
                "requests": {"memory": "4Mi"},
                "limits": {"memory": "9Mi", "cpu": "3", "nvidia.com/gpu": "9"},
            },
            "containers": [container(requests={"memory": "8Mi"})],
        },
        1,
        GPU,
        {"memory": 4 * MIB, "cpu": 3000, "nvidia.com/gpu": 1},
    ),
    (
        "what the API server would refuse is as if it were not there",
        {"containers": "none", "nodeSelector": [], "overhead": {"cpu": None}, "initContainers": [1]},
        1,
        GPU,
        {"nvidia.com/gpu": 1},
    ),
]


@pytest.mark.parametrize(
    ("spec", "slots", "slot", "found"), [row[1:] for row in REQUESTS], ids=[r[0] for r in REQUESTS]
)
def test_requests_of_the_pod(spec: dict[str, Any], slots: int, slot: SlotResource, found: dict[str, int]) -> None:
    requirements = pod_requirements({"spec": spec}, slots=slots, slot=slot)
    assert dict(requirements.requests) == found
    assert requirements.slot == (slot if slots else None)


def test_containers_of_the_launcher_request_something_too() -> None:
    pod = {"spec": {"containers": [container(MAIN, requests={"cpu": "1"})]}}
    found = pod_requirements(pod, slots=1, slot=GPU, launcher_requests=(("cpu", 10), ("memory", 32 * MIB)))
    assert dict(found.requests) == {"nvidia.com/gpu": 1, "cpu": 1010, "memory": 32 * MIB}


def test_a_pod_with_a_device_tolerates_the_taint_of_its_resource_and_others_do_not() -> None:
    """As the admission plugin ExtendedResourceToleration has it."""
    device = Toleration("nvidia.com/gpu", "Exists")
    assert device in pod_requirements({}, slots=1, slot=GPU).tolerations
    assert device not in pod_requirements({}, slots=0, slot=GPU).tolerations


def test_there_is_no_affinity_but_a_required_one() -> None:
    preferred = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}}
    assert pod_requirements({"spec": {"affinity": preferred}}, slots=0, slot=GPU).affinity is None


def selecting(**labels: str) -> dict[str, Any]:
    return {"spec": {"nodeSelector": labels}}


CLUSTER = {
    "resource_manager": {"type": "kubernetes", "max_slots_per_pod": 8},
    "task_container_defaults": {"gpu_pod_spec": selecting(of="cluster"), "cpu_pod_spec": selecting(of="cpus")},
    "resource_pools": [
        {"pool_name": "default"},
        {
            "pool_name": "own",
            "slot_resource": "nvidia.com/mig-1g.5gb",
            "task_container_defaults": {"gpu_pod_spec": selecting(of="pool")},
        },
    ],
}


@pytest.mark.parametrize(
    ("task_type", "pool", "slots", "pod_spec", "selector"),
    [
        ("NOTEBOOK", "default", 1, None, {"of": "cluster"}),
        ("NOTEBOOK", "default", 0, None, {"of": "cpus"}),
        ("NOTEBOOK", "own", 1, None, {"of": "pool"}),
        ("NOTEBOOK", "own", 0, None, {"of": "cpus"}),
        ("COMMAND", "default", 1, selecting(zone="a"), {"of": "cluster", "zone": "a"}),
        ("COMMAND", "default", 1, {"spec": {"nodeSelector": {"$patch": "replace", "zone": "a"}}}, {"zone": "a"}),
        ("TRIAL", "default", 1, selecting(zone="a"), {"zone": "a"}),
        ("TRIAL", "default", 1, None, {}),
        ("CHECKPOINT_GC", "default", 0, selecting(zone="a"), {"zone": "a"}),
        ("COMMAND", "default", 1, {"spec": {"$patch": "nonsense"}}, {}),
    ],
)
def test_a_task_has_the_pod_that_its_launcher_will_make(
    task_type: str, pool: str, slots: int, pod_spec: dict[str, Any] | None, selector: dict[str, str]
) -> None:
    cluster = msgspec.convert(CLUSTER, ClusterConfig)
    found = task_requirements(task_type, pod_spec, cluster=cluster, pool=pool, slots=slots)
    assert dict(found.node_selector) == selector
    made = "nvidia.com/mig-1g.5gb" if pool == "own" else "nvidia.com/gpu"
    assert dict(found.requests) == ({made: slots} if slots else {})


def test_slots_of_cores_are_what_the_launcher_requests() -> None:
    manager = {"type": "kubernetes", "slot_type": "cpu", "slot_resource_requests": {"cpu": 2.5}, "max_slots_per_pod": 8}
    cluster = msgspec.convert({**CLUSTER, "resource_manager": manager}, ClusterConfig)
    found = task_requirements(
        "COMMAND", None, cluster=cluster, pool="default", slots=3, launcher_requests=(("cpu", 10),)
    )
    assert dict(found.requests) == {"cpu": 7510}
    assert found.slot == SlotResource("cpu", 2500)


def test_nothing_is_asked_of_the_machine_that_runs_processes() -> None:
    pod = {"spec": {"nodeSelector": {"zone": "a"}, "containers": [container(MAIN, requests={"memory": "900Gi"})]}}
    found = task_requirements("TRIAL", pod, cluster=ClusterConfig(), pool="default", slots=4)
    assert found == PodRequirements()
