"""What nodes have in common is reported once, and nothing of what a pod may ask for is lost by that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.podspec.quantities import units
from services.launcher.backends.kubernetes.capacity.foreign_requests import ForeignRequests
from services.launcher.backends.kubernetes.capacity.label_places import MOST_SHAPES, MOST_VALUES
from services.launcher.backends.kubernetes.capacity.node_parts import BadNodes, ShapeRules
from services.launcher.backends.kubernetes.capacity.shapes import NodeShapes, ShapeFinder
from services.launcher.backends.kubernetes.client.objects import Node, SlimPod
from tests.unit.launcher.backends.kubernetes.builders import node

GPU = "nvidia.com/gpu"
RULES = ShapeRules(slot_resource=GPU, mark="determined.ai/cluster-id-c")
MOST_BYTES = 8 << 20
"""What the bus of the chart takes as one message."""


def node_shapes(nodes: Iterable[Node], *, with_claims: Collection[str] = ()) -> NodeShapes:
    return ShapeFinder(RULES).find(nodes, with_claims=with_claims)


def labels_of(found: NodeShapes, name: str) -> dict[str, str]:
    own = found.by_node[name]
    shape = found.shapes[own.shape]
    return {**shape.labels, **dict.fromkeys(shape.name_labels, name), **own.labels}


def allocatable_of(found: NodeShapes, name: str) -> dict[str, int]:
    own = found.by_node[name]
    amounts = found.shapes[own.shape].allocatable or {}
    return {resource: amount + own.spare.get(resource, 0) for resource, amount in amounts.items()}


def alike(count: int, features: Mapping[str, str] = {}) -> list[Node]:
    """Nodes of one kind, as a cloud has them: nearly the same memory, and labels that are theirs alone."""
    return [
        node(
            f"n{number}",
            allocatable={"cpu": "63770m", "memory": f"{527867288 + 4 * number}Ki", GPU: "8", "pods": "110"},
            labels={
                "kubernetes.io/hostname": f"n{number}",
                "rack": f"r{number // 2}",
                "zone": f"z{number % 2}",
                **features,
            },
        )
        for number in range(count)
    ]


def test_nodes_of_one_kind_have_one_shape_but_for_labels_with_few_values() -> None:
    found = node_shapes(alike(100))
    assert [shape.labels for shape in found.shapes] == [{"zone": "z0"}, {"zone": "z1"}]
    assert {shape.name_labels for shape in found.shapes} == {("kubernetes.io/hostname",)}
    assert found.by_node["n7"].labels == {"rack": "r3"}
    assert labels_of(found, "n7") == {"kubernetes.io/hostname": "n7", "rack": "r3", "zone": "z1"}
    assert allocatable_of(found, "n7") == {
        "cpu": 63_770,
        "memory": (527867288 + 28) * 1024,
        GPU: 8,
        "pods": 110,
    }


LABELS = st.dictionaries(st.sampled_from(["a", "b", "c", "determined.ai/cluster-id-c"]), st.text("xyz", max_size=3))
AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "ephemeral-storage", "pods", GPU]),
    st.one_of(st.integers(0, 1 << 50).map(str), st.sampled_from(["1500m", "527867288Ki", "1e3"])),
    min_size=1,
)
FIELDS = st.tuples(LABELS, AMOUNTS, st.booleans(), st.booleans())


@given(st.lists(FIELDS, max_size=2 * MOST_VALUES + 2), st.randoms())
def test_nothing_is_lost_and_the_order_of_nodes_does_not_matter(fields: list[Any], random: Any) -> None:
    nodes = [
        node(f"n{number}", labels=labels, allocatable=amounts, unschedulable=cordoned, ready=str(ready))
        for number, (labels, amounts, cordoned, ready) in enumerate(fields)
    ]
    shuffled = list(nodes)
    random.shuffle(shuffled)
    found = node_shapes(shuffled)
    assert found == node_shapes(nodes)
    encoded = [msgspec.json.encode(shape) for shape in found.shapes]
    assert len(set(encoded)) == len(encoded)
    for each in nodes:
        name = each.metadata.name
        shape = found.shapes[found.by_node[name].shape]
        assert labels_of(found, name) == {
            key: value for key, value in each.metadata.labels.items() if key != RULES.mark
        }
        assert allocatable_of(found, name) == {
            resource: units(resource, value) for resource, value in each.status.allocatable.items()
        }
        assert (shape.unschedulable, shape.ready) == (
            each.spec.unschedulable,
            each.status.conditions[0].status == "True",
        )


NAMES = "abcdefghijkl"
CHANGES = st.dictionaries(st.sampled_from(NAMES), st.none() | FIELDS, max_size=len(NAMES))


@given(st.lists(st.tuples(CHANGES, st.sets(st.sampled_from(NAMES))), max_size=4))
def test_what_was_found_before_makes_no_difference(history: list[tuple[dict[str, Any], set[str]]]) -> None:
    finder, there = ShapeFinder(RULES), dict[str, Node]()
    for changes, claims in history:
        for name, fields in changes.items():
            finder.forget(name)
            there.pop(name, None)
            if fields is not None:
                labels, amounts, cordoned, ready = fields
                there[name] = node(name, labels=labels, allocatable=amounts, unschedulable=cordoned, ready=str(ready))
        assert finder.find(there.values(), with_claims=claims) == node_shapes(there.values(), with_claims=claims)


def with_several_labels(count: int) -> list[Node]:
    """Nodes with labels of few values each, which make hundreds of combinations."""
    return [
        node(
            f"n{number}",
            labels={
                "arch": f"{number % 3}",
                "cabinet": f"{number // 3 % 8}",
                "queue": f"{number // 24 % 8}",
                "zone": f"{number // 192}",
            },
        )
        for number in range(count)
    ]


def test_labels_that_make_many_shapes_together_are_said_of_each_node() -> None:
    nodes = with_several_labels(1000)
    combinations = {tuple(sorted(each.metadata.labels.items())) for each in nodes}
    assert len(combinations) > 5 * MOST_SHAPES
    found = node_shapes(nodes)
    assert len(found.shapes) == 18 <= MOST_SHAPES
    for each in nodes:
        assert labels_of(found, each.metadata.name) == each.metadata.labels
    # Those with the most values first, and no more than that takes.
    assert {key for shape in found.shapes for key in shape.labels} == {"arch", "zone"}
    assert {key for own in found.by_node.values() for key in own.labels} == {"cabinet", "queue"}


def test_labels_stay_in_shapes_when_nodes_differ_otherwise() -> None:
    features = {f"feature{number}": "true" for number in range(90)}
    nodes = [
        node(f"n{number}", allocatable={"cpu": f"{number % 100}"}, labels=features if number % 2 else {"gpu": "a"})
        for number in range(1000)
    ]
    found = node_shapes(nodes)
    assert len(found.shapes) == 100
    assert all(own.labels == {} for own in found.by_node.values())


@pytest.mark.parametrize(
    ("bad", "conditions", "taints", "found"),
    [
        (BadNodes(conditions=("KernelDeadlock",)), {"KernelDeadlock": "True"}, [], ("KernelDeadlock",)),
        (BadNodes(conditions=("KernelDeadlock",)), {"KernelDeadlock": "False"}, [], ()),
        (BadNodes(conditions=("GpuHealthy=False",)), {"GpuHealthy": "False"}, [], ("GpuHealthy=False",)),
        (BadNodes(conditions=("GpuHealthy=False",)), {"GpuHealthy": "True"}, [], ()),
        (BadNodes(conditions=("GpuHealthy=Unknown",)), {"GpuHealthy": "Unknown"}, [], ("GpuHealthy=Unknown",)),
        (BadNodes(taints=("xid",)), {}, [("xid", "79")], ("xid",)),
        (BadNodes(taints=("xid=79",)), {}, [("xid", "79")], ("xid=79",)),
        (BadNodes(taints=("xid=79",)), {}, [("xid", "13")], ()),
        (BadNodes(), {"KernelDeadlock": "True"}, [("xid", "79")], ()),
        *(
            (BadNodes(taints=("xid",)), {}, [(mark, "now"), ("xid", "79")], ("xid", mark))
            for mark in ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted", "karpenter.sh/disruption")
        ),
        (
            BadNodes(taints=("karpenter.sh/disrupted",)),
            {},
            [("karpenter.sh/disrupted", "")],
            ("karpenter.sh/disrupted",),
        ),
        (BadNodes(), {}, [("DeletionCandidateOfClusterAutoscaler", "1")], ()),
    ],
)
def test_what_the_pool_takes_for_bad(
    bad: BadNodes, conditions: dict[str, str], taints: list[tuple[str, str]], found: tuple[str, ...]
) -> None:
    on_node = [{"key": key, "value": value, "effect": "NoSchedule"} for key, value in taints]
    more = [{"type": kind, "status": status} for kind, status in conditions.items()]
    body = msgspec.to_builtins(node("n", taints=on_node))
    body["status"]["conditions"] = [*body["status"]["conditions"], *more]
    assert bad.of(msgspec.convert(body, Node)) == found


def test_nodes_that_are_to_be_taken_away_have_one_shape_whenever_that_was_said() -> None:
    mark = {"key": "DeletionCandidateOfClusterAutoscaler", "effect": "PreferNoSchedule"}
    found = node_shapes([node(name, taints=[{**mark, "value": said}]) for name, said in (("a", "17"), ("b", "18"))])
    [shape] = found.shapes
    assert [(taint.key, taint.value, taint.effect) for taint in shape.taints] == [(mark["key"], "", mark["effect"])]


def test_devices_that_are_offered_by_claims_only_are_said_to_be() -> None:
    nodes = [node("both"), node("none", allocatable={"cpu": "8"}), node("claims", allocatable={"cpu": "8"})]
    found = node_shapes(nodes, with_claims={"both", "claims"})
    said = {name: found.shapes[own.shape].claims_only for name, own in found.by_node.items()}
    assert said == {"both": False, "none": False, "claims": True}


def foreign(uid: str, on: str = "n1", phase: str = "Running", **spec: Any) -> SlimPod:
    body = {
        "metadata": {"name": uid, "uid": uid},
        "spec": {"nodeName": on, **spec},
        "status": {"phase": phase},
    }
    return msgspec.convert(body, SlimPod)


def asking(restart: str = "", **requests: str) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests}, "restartPolicy": restart}


def test_what_pods_of_others_request_is_summed_up_by_node() -> None:
    sums = ForeignRequests()
    whole = foreign(
        "a",
        containers=[asking(cpu="1"), {"name": "d", "resources": {"limits": {"memory": "1Gi"}}}],
        initContainers=[asking(cpu="3"), asking("Always", cpu="500m")],
        overhead={"cpu": "250m"},
    )
    sums.note(whole)
    sums.note(foreign("b", containers=[asking(cpu="1")]))
    sums.note(foreign("c", on="", containers=[asking(cpu="1")]))
    assert sums.on("n1") == {"cpu": 4250, "memory": 1 << 30, "pods": 2}
    sums.note(foreign("c", on="n2", containers=[asking(cpu="1")]))
    assert sums.on("n2") == {"cpu": 1000, "pods": 1}
    sums.note(foreign("b", phase="Succeeded", containers=[asking(cpu="1")]))
    sums.note(whole)
    assert sums.on("n1") == {"cpu": 3250, "memory": 1 << 30, "pods": 1}
    sums.forget(whole)
    sums.forget(whole)
    assert sums.on("n1") == {}


def message(count: int) -> PoolCapacity:
    """A pool in which every slot is held, on nodes with ninety labels of their features."""
    features = {f"feature.node.kubernetes.io/cpu-cpuid.FEATURE{number}": "true" for number in range(90)}
    found = node_shapes(alike(count, features))
    return PoolCapacity(
        pool="default",
        backend="kubernetes",
        shapes=found.shapes,
        nodes=tuple(
            NodeCapacity(
                name=name,
                addresses=("10.100.200.100", "ip-10-100-200-100.eu-central-1.compute.internal"),
                registered_at="2026-01-01T00:00:00Z",
                slot_type="cuda",
                devices=tuple(
                    Device(
                        id=f"{number:03d}",
                        allocation=f"12345.4a7c2b9e-{number:04d}-4d5e-8f90-1234567890ab.1",
                        container=f"exp-12345-trial-{number:05d}-attempt-1-abcde-0-xyz12",
                    )
                    for number in range(8)
                ),
                shape=own.shape,
                labels=own.labels,
                spare=own.spare,
                foreign={"cpu": 1230, "memory": 2345678901, "ephemeral-storage": 100000000, "pods": 14},
            )
            for name, own in found.by_node.items()
        ),
    )


def test_five_thousand_nodes_with_eight_slots_are_one_message() -> None:
    said = message(5000)
    assert len(msgspec.json.encode(said)) < MOST_BYTES
    assert msgspec.json.decode(msgspec.json.encode(said), type=PoolCapacity) == said
