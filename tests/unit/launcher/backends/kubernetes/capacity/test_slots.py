from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from libs.cluster.config import ClusterConfig
from libs.events.capacity import NodeCapacity
from libs.podspec.quantities import quantity
from services.launcher.backends.kubernetes.capacity.node_matching import matches, pool_requirements
from services.launcher.backends.kubernetes.capacity.slots import (
    OurPod,
    SlotKind,
    assumed_nodes,
    foreign_pod,
    node_capacities,
    quota_slots,
    takes_pods,
)
from services.launcher.backends.kubernetes.client.objects import Node
from services.launcher.backends.kubernetes.manifests.names import node_label
from tests.unit.launcher.backends.kubernetes.builders import node, quota, slim_pod, with_pod

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
OF_MIG = SlotKind(type="cuda", resource=MIG)
CUDA, CPU = SlotKind(type="cuda", resource="nvidia.com/gpu"), SlotKind(type="cpu", resource="cpu", cpu=2.0)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("2", "2"),
        ("500m", "0.5"),
        (8, "8"),
        ("1e3", "1000"),
        ("64Gi", str(64 << 30)),
        ("1.5k", "1500"),
        ("100u", "0.0001"),
        ("", "0"),
        ("some", "0"),
        ("1.2.3", "0"),
    ],
)
def test_quantities(text: str | int, amount: str) -> None:
    assert quantity(text) == Decimal(amount)


def cluster(*pools: dict[str, Any], **shared: Any) -> ClusterConfig:
    names = [pool["pool_name"] for pool in pools]
    manager = {"default_compute_resource_pool": names[0], "default_aux_resource_pool": names[0]}
    return msgspec.convert(
        {"resource_pools": list(pools), "resource_manager": manager, "task_container_defaults": shared}, ClusterConfig
    )


def pool(name: str, gpu: dict[str, Any] | None = None, cpu: dict[str, Any] | None = None) -> dict[str, Any]:
    defaults = {"gpu_pod_spec": gpu, "cpu_pod_spec": cpu}
    return {"pool_name": name, **({"task_container_defaults": defaults} if gpu or cpu else {})}


def mapping(config: ClusterConfig, nodes: list[Node]) -> dict[str, list[str]]:
    found = {}
    for each in config.resource_pools:
        wanted = pool_requirements(config, each.pool_name)
        found[each.pool_name] = [
            item.metadata.name
            for item in nodes
            if matches(wanted.gpu if GPU in item.status.allocatable else wanted.cpu, item)
        ]
    return found


def gpu_node(name: str, **fields: Any) -> Node:
    return node(name, **fields)


def cpu_node(name: str, **fields: Any) -> Node:
    return node(name, allocatable={"cpu": "8"}, **fields)


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def selecting(**labels: str) -> dict[str, Any]:
    return with_pod(nodeSelector=labels)


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    return with_pod(affinity={"nodeAffinity": {key: {"nodeSelectorTerms": list(terms)}}})


LABELLED = [
    cpu_node("comp", labels={"foo": "bar"}),
    cpu_node("comp2", labels={"foo": "bar", "abc": "def"}),
    cpu_node("aux2", labels={"foo": "bar"}),
    cpu_node("aux"),
]
IN_AAA = {
    "matchExpressions": [{"key": "labelIn", "operator": "In", "values": ["aaa"]}],
    "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["aaa"]}],
}
MAPPINGS = [
    (
        "one pool without specs has all, with the usual taints",
        cluster(pool("p")),
        [gpu_node("g", taints=[taint("nvidia.com/gpu", "present")]), cpu_node("c"), cpu_node("t", taints=[taint("x")])],
        {"p": ["g", "c"]},
    ),
    (
        "a selector",
        cluster(pool("p", gpu=selecting(abc="def"))),
        [gpu_node("comp", labels={"foo": "bar"}), gpu_node("comp2", labels={"foo": "bar", "abc": "def"})],
        {"p": ["comp2"]},
    ),
    (
        "two pools, two selectors",
        cluster(pool("p1", cpu=selecting(abc="def")), pool("p2", cpu=selecting(foo="bar"))),
        LABELLED,
        {"p1": ["comp2"], "p2": ["comp", "comp2", "aux2"]},
    ),
    (
        "affinity on labels and fields",
        cluster(pool("p", gpu=required(IN_AAA))),
        [gpu_node("a", labels={"labelIn": "aaa"}), gpu_node("aaa", labels={"labelIn": "aaa"}), gpu_node("b")],
        {"p": ["a"]},
    ),
    (
        "affinity without node affinity asks nothing of nodes",
        cluster(pool("p", gpu=with_pod(affinity={"podAffinity": {}}))),
        [gpu_node("a")],
        {"p": ["a"]},
    ),
    (
        "alternatives in a selector",
        cluster(pool("p", gpu=selecting(zone="a,b"))),
        [gpu_node(zone, labels={"zone": zone}) for zone in "abc"],
        {"p": ["a", "b"]},
    ),
    (
        "an empty selector selects nothing",
        cluster(pool("p", gpu=with_pod(nodeSelector={}))),
        [gpu_node("a")],
        {"p": []},
    ),
    (
        "pools without specs beside others have untainted nodes only",
        cluster(pool("p"), pool("q", gpu=with_pod(tolerations=[{"key": "t", "operator": "Exists"}]))),
        [gpu_node("a"), gpu_node("b", taints=[taint("t", "v")])],
        {"p": ["a"], "q": ["a", "b"]},
    ),
    (
        "tolerations of the cluster hold in every pool",
        cluster(
            pool("p", gpu=selecting(a="b")),
            gpu_pod_spec=with_pod(tolerations=[{"key": "t", "value": "v"}]),
        ),
        [gpu_node(name, labels={"a": "b"}, taints=[taint("t", name)]) for name in ("v", "w")],
        {"p": ["v"]},
    ),
    (
        "what the cluster itself taints does not change the pool",
        cluster(pool("p")),
        [gpu_node("a", taints=[taint("node.kubernetes.io/not-ready", effect="NoExecute")])],
        {"p": ["a"]},
    ),
]


@pytest.mark.parametrize(("config", "nodes", "expected"), [case[1:] for case in MAPPINGS], ids=[c[0] for c in MAPPINGS])
def test_which_nodes_belong_to_which_pool(
    config: ClusterConfig, nodes: list[Node], expected: dict[str, list[str]]
) -> None:
    assert mapping(config, nodes) == expected


def capacities(nodes: list[Node], ours: list[OurPod], others: list[Any], kind: SlotKind = CUDA) -> list[NodeCapacity]:
    found = [foreign_pod(each, kind) for each in others]
    return list(
        node_capacities(
            nodes,
            ours=ours,
            others=[each for each in found if each is not None],
            kind=kind,
            requirements=pool_requirements(cluster(pool("p")), "p"),
            cluster_id="c",
        )
    )


def test_slots_are_filled_with_ours_then_with_those_of_others() -> None:
    ours = [
        OurPod(allocation="t.1", name="p1", node="n1", slots=2),
        OurPod(allocation="a.1", name="p2", node="n1", slots=0),
    ]
    others = [
        slim_pod("theirs", "n1", {GPU: "1"}),
        slim_pod("other-pool", "n1", {GPU: "1"}, determined="x.1"),
        slim_pod("no-gpu", "n1", {"cpu": "4"}),
    ]
    (found,) = capacities([node("n1", allocatable={GPU: "5"})], ours, others)
    assert [(device.id, device.allocation, device.container, device.foreign) for device in found.devices] == [
        ("000", "t.1", "p1", False),
        ("001", "t.1", "p1", False),
        ("002", "x.1", "other-pool", True),
        ("003", None, "theirs", True),
        ("004", None, None, False),
    ]
    assert found.aux_containers == ("a.1",)
    assert found.addresses == ("10.0.0.1",)


def test_a_slot_is_the_resource_that_the_pool_names() -> None:
    """Nodes that have only that count as nodes with devices: pods for them are made with the pod spec of devices."""
    config = cluster(pool("p", gpu=with_pod(nodeSelector={"mig": "true"}), cpu=with_pod(nodeSelector={"mig": "no"})))
    found = node_capacities(
        [node("n1", allocatable={MIG: "7", GPU: "1"}, labels={"mig": "true"}), node("n2", labels={"mig": "no"})],
        ours=[OurPod(allocation="t.1", name="p1", node="n1", slots=2)],
        others=[each for each in [foreign_pod(slim_pod("x", "n1", {MIG: "1", GPU: "1"}), OF_MIG)] if each is not None],
        kind=OF_MIG,
        requirements=pool_requirements(config, "p"),
        cluster_id="c",
    )
    assert [(each.name, [device.container for device in each.devices]) for each in found] == [
        ("n1", ["p1", "p1", "x", None, None, None, None])
    ]
    only = node("n3", allocatable={MIG: "7"}, labels={"mig": "true"})
    assert [
        each.name
        for each in node_capacities(
            [only], ours=[], others=[], kind=OF_MIG, requirements=pool_requirements(config, "p"), cluster_id="c"
        )
    ] == ["n3"]


def test_more_than_there_is_is_cut() -> None:
    (found,) = capacities([node("n1", allocatable={GPU: "1"})], [], [slim_pod("t", "n1", {GPU: "3"})])
    assert [device.container for device in found.devices] == ["t"]


def test_cores_in_use_by_others_take_whole_slots_and_the_system_reserves() -> None:
    others = [
        slim_pod("a", "n1", {"cpu": "500m"}),
        slim_pod("b", "n1", {"cpu": "2600m"}),
        slim_pod("master", "n1", {"cpu": "4"}, **{"determined-system": "master"}),
    ]
    (found,) = capacities([node("n1", allocatable={"cpu": "20"})], [], others, CPU)
    assert [device.container for device in found.devices] == ["b", "a", *[None] * 6]


STATES = [
    ({}, True, False),
    ({"unschedulable": True}, False, False),
    ({"ready": "Unknown"}, False, False),
    ({"labels": {"determined.ai/cluster-id-c": "no-execute"}}, False, False),
    ({"labels": {"determined.ai/cluster-id-c": "no-schedule"}}, False, True),
    ({"labels": {"determined.ai/cluster-id-other": "no-execute"}}, True, False),
]


@pytest.mark.parametrize(("fields", "enabled", "draining"), STATES)
def test_nodes_that_take_nothing_new(fields: dict[str, Any], enabled: bool, draining: bool) -> None:
    (found,) = capacities([node("n1", **fields)], [], [])
    assert (found.enabled, found.draining) == (enabled, draining)


def test_a_node_that_left_the_pool_stays_while_ours_run_there() -> None:
    tainted = node("n1", taints=[taint("x")])
    assert capacities([tainted], [], []) == []
    assert len(capacities([tainted], [OurPod(allocation="t.1", name="p", node="n1", slots=1)], [])) == 1


def test_without_sight_of_nodes_capacity_is_what_is_allowed() -> None:
    ours = [OurPod(allocation="t.1", name="p1", node="somewhere", slots=3)]
    found = assumed_nodes(6, per_node=4, ours=ours, kind=CUDA, name="ns1")
    assert [(each.name, each.slots) for each in found] == [("ns1-0", 4), ("ns1-1", 2)]
    assert [device.allocation for device in found[0].devices] == ["t.1"] * 3 + [None]
    assert [each.slots for each in assumed_nodes(0, per_node=0, ours=[], kind=CUDA, name="ns1")] == [0]


def test_a_quota_counts_for_others_too() -> None:
    ours = [OurPod(allocation="t.1", name="p", node="n1", slots=2)]
    quotas = [
        quota({f"requests.{GPU}": "8"}, {f"requests.{GPU}": "5"}),
        quota({f"limits.{GPU}": "6"}, {f"limits.{GPU}": "2"}, "r"),
        quota({"pods": "3"}, name="s"),
    ]
    assert quota_slots(quotas, ours=ours, kind=CUDA) == 5
    assert quota_slots(quotas[2:], ours=ours, kind=CUDA) is None
    assert quota_slots([quota({"cpu": "9"}, {"cpu": "500m"})], ours=[], kind=CPU) == 3


def test_a_node_takes_pods_when_it_is_ready_and_neither_cordoned_nor_disabled() -> None:
    assert takes_pods(node("n1"), "c")
    assert takes_pods(node("n1", labels={node_label("other"): "no-execute"}), "c")
    for closed in (node("n1", ready="False"), node("n1", unschedulable=True), node("n1", labels={node_label("c"): ""})):
        assert not takes_pods(closed, "c")
