"""What keeps a pod from a node, and from all nodes, in order and in words."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import pytest
from msgspec import Struct

from services.scheduler.orders.pod_requirements import pod_requirements
from services.scheduler.plan.nodes.amounts import Amounts, in_words
from services.scheduler.plan.nodes.explaining import excluding, sentence
from services.scheduler.plan.nodes.requirements import PodRequirements, SlotResource
from services.scheduler.plan.nodes.selectors import SelectorRequirement, SelectorTerm, matches_term
from services.scheduler.plan.nodes.shapes import NodeShape, ShapedNode, ShapeTable
from services.scheduler.plan.nodes.taints import NodeTaint, Toleration
from services.scheduler.plan.nodes.unmet import Unmet, UnmetCode, unmet

GPU = SlotResource("nvidia.com/gpu")
GIB = 1 << 30
A100 = (("gpu", "a100"),)


def allocatable(gpus: int = 8, *, cores: int = 64, memory_gib: int = 512, pods: int = 110) -> Amounts:
    return tuple(
        sorted({"nvidia.com/gpu": gpus, "cpu": cores * 1000, "memory": memory_gib * GIB, "pods": pods}.items())
    )


def shape(gpus: int = 8, **fields: Any) -> NodeShape:
    return NodeShape(**{"allocatable": allocatable(gpus), **fields})


def needs(slots: int = 8, *, selector: tuple[tuple[str, str], ...] = (), **fields: Any) -> PodRequirements:
    requests = dict(fields.pop("requests", ())) | {"nvidia.com/gpu": slots}
    return PodRequirements(node_selector=selector, requests=tuple(sorted(requests.items())), slot=GPU, **fields)


class Case(Struct, frozen=True, kw_only=True):
    name: str
    shape: NodeShape
    pod: PodRequirements = needs(8)
    taken: Amounts = ()
    found: Unmet | None


CASES = [
    Case(name="an empty node of the right size", shape=shape(), found=None),
    Case(
        name="too few slots",
        shape=shape(4),
        found=Unmet(code=UnmetCode.SLOTS, subject="nvidia.com/gpu", needed=8, offered=4),
    ),
    Case(
        name="slots that others hold",
        shape=shape(),
        taken=(("nvidia.com/gpu", 3),),
        found=Unmet(code=UnmetCode.SLOTS, subject="nvidia.com/gpu", needed=8, offered=5),
    ),
    Case(
        name="the state of a node comes before its size",
        shape=shape(4, ready=False),
        found=Unmet(code=UnmetCode.NOT_READY),
    ),
    Case(
        name="what the pool calls bad excludes a pod that tolerates everything",
        shape=shape(bad=("KernelDeadlock",)),
        pod=needs(tolerations=(Toleration(operator="Exists"),)),
        found=Unmet(code=UnmetCode.BAD_CONDITION, subject="KernelDeadlock"),
    ),
    Case(
        name="a cordoned node has its taint besides",
        shape=shape(unschedulable=True, taints=(NodeTaint("node.kubernetes.io/unschedulable"),)),
        found=Unmet(code=UnmetCode.CORDONED),
    ),
    Case(
        name="a cordon can be tolerated",
        shape=shape(unschedulable=True, taints=(NodeTaint("node.kubernetes.io/unschedulable"),)),
        pod=needs(tolerations=(Toleration("node.kubernetes.io/unschedulable", "Exists", effect="NoSchedule"),)),
        found=None,
    ),
    Case(
        name="a taint that only prefers keeps nobody away",
        shape=shape(taints=(NodeTaint("spot", effect="PreferNoSchedule"),)),
        found=None,
    ),
    Case(
        name="the first taint that is not tolerated",
        shape=shape(taints=(NodeTaint("spot"), NodeTaint("team", "vision", "NoExecute"))),
        pod=needs(tolerations=(Toleration("spot", "Exists"),)),
        found=Unmet(code=UnmetCode.TAINT, subject="team=vision:NoExecute"),
    ),
    Case(
        name="an operator of a later release tolerates nothing",
        shape=shape(taints=(NodeTaint("sla", "950"),)),
        pod=needs(tolerations=(Toleration("sla", "Gt", "900"),)),
        found=Unmet(code=UnmetCode.TAINT, subject="sla=950:NoSchedule"),
    ),
    Case(
        name="a label that is missing",
        shape=shape(labels=(("gpu", "h100"),)),
        pod=needs(selector=A100),
        found=Unmet(code=UnmetCode.NODE_SELECTOR, subject="gpu=a100"),
    ),
    Case(
        name="an affinity without terms matches no node",
        shape=shape(),
        pod=needs(affinity=()),
        found=Unmet(code=UnmetCode.NODE_AFFINITY),
    ),
    Case(
        name="none of the alternatives",
        shape=shape(labels=(("gpu", "h100"),)),
        pod=needs(
            affinity=(
                SelectorTerm((SelectorRequirement("gpu", "In", ("a100",)),)),
                SelectorTerm((SelectorRequirement("gpu", "DoesNotExist"),)),
            )
        ),
        found=Unmet(code=UnmetCode.NODE_AFFINITY, subject="gpu=a100 or no gpu"),
    ),
    Case(
        name="memory, when the slots are there",
        shape=shape(),
        pod=needs(requests=(("memory", 900 * GIB),)),
        found=Unmet(code=UnmetCode.RESOURCE, subject="memory", needed=900 * GIB, offered=512 * GIB),
    ),
    Case(
        name="slots are named before cores",
        shape=shape(4),
        pod=needs(requests=(("cpu", 128_000),)),
        found=Unmet(code=UnmetCode.SLOTS, subject="nvidia.com/gpu", needed=8, offered=4),
    ),
    Case(
        name="a resource that the node does not know",
        shape=shape(),
        pod=needs(requests=(("vendor.example/nic", 1),)),
        found=Unmet(code=UnmetCode.RESOURCE, subject="vendor.example/nic", needed=1, offered=0),
    ),
    Case(
        name="as many pods as the node may have",
        shape=shape(),
        taken=(("pods", 110),),
        found=Unmet(code=UnmetCode.PODS, subject="pods", needed=1, offered=0),
    ),
    Case(
        name="devices by claim only",
        shape=shape(0, offers_claims_only=True),
        found=Unmet(code=UnmetCode.DEVICES_BY_CLAIM, subject="nvidia.com/gpu"),
    ),
    Case(
        name="a slot of half a core",
        shape=NodeShape(allocatable=(("cpu", 1750), ("pods", 1))),
        pod=PodRequirements(requests=(("cpu", 2000),), slot=SlotResource("cpu", 500)),
        found=Unmet(code=UnmetCode.SLOTS, subject="cpu", needed=4, offered=3),
    ),
    Case(name="a node whose size nobody knows", shape=NodeShape(), found=None),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_the_first_condition_that_a_node_does_not_meet(case: Case) -> None:
    assert unmet(case.pod, case.shape, taken=case.taken) == case.found


def nodes(*shapes: tuple[int, NodeShape]) -> list[ShapedNode]:
    return [
        ShapedNode(name=f"{index}-{n}", shape=one) for index, (count, one) in enumerate(shapes) for n in range(count)
    ]


SMALL, LARGE = shape(4, labels=A100), shape(8, labels=(("gpu", "h100"),))
SPOT = shape(8, labels=A100, taints=(NodeTaint("spot", "true"),))

SENTENCES = [
    (
        needs(8, selector=A100),
        nodes((3, SMALL), (2, LARGE)),
        [
            "needs 8 slots with gpu=a100; the largest such node has 4",
            "needs a node with gpu=a100, which no node has; 2",
        ],
    ),
    (
        needs(8, selector=A100),
        nodes((1, SMALL), (1, shape(2, labels=A100))),
        ["needs 8 slots with gpu=a100; the largest such node has 4"],
    ),
    (
        needs(8, selector=A100),
        nodes((2, SPOT)),
        ["does not tolerate the taint spot=true:NoSchedule; 2 nodes meet all other conditions"],
    ),
    (
        needs(8, selector=(("gpu", "b200"),)),
        nodes((5, SMALL)),
        ["needs a node with gpu=b200, which no node has; no node meets all other conditions"],
    ),
    (needs(17), nodes((1, shape(1))), ["needs 17 slots; the largest such node has 1"]),
    (
        needs(1, requests=(("memory", 900 * GIB),)),
        nodes((4, shape())),
        ["needs 900GiB of memory; the largest such node has 512GiB of memory"],
    ),
    (needs(1), nodes((1, shape(unschedulable=True))), ["needs a node that is not cordoned; 1 node meets all other"]),
    (needs(1), nodes((2, shape(ready=False))), ["needs a node that is ready; 2 nodes meet all other conditions"]),
    (needs(1), nodes((2, shape(bad=("XidError",)))), ["needs a node without XidError; 2 nodes meet all other"]),
    (
        needs(1, affinity=(SelectorTerm((SelectorRequirement("rack", "In", ("r1", "r2")),)),)),
        nodes((2, shape())),
        ["its node affinity (rack in (r1, r2)) matches no node; 2 nodes meet all other conditions"],
    ),
    (
        needs(1),
        nodes((2, shape(0, offers_claims_only=True))),
        ["needs nvidia.com/gpu, but the devices are offered through Dynamic Resource Allocation only; 2 nodes"],
    ),
    (
        needs(1),
        nodes((1, NodeShape(allocatable=allocatable(pods=0)))),
        ["needs a node that is allowed one more pod; 1 node meets all other conditions"],
    ),
    (needs(4), nodes((1, SMALL), (1, shape(0))), []),
    (needs(4), [], []),
]


@pytest.mark.parametrize(("pod", "there", "said"), SENTENCES)
def test_what_excludes_all_nodes_is_said_with_its_numbers(
    pod: PodRequirements, there: list[ShapedNode], said: list[str]
) -> None:
    found = [sentence(each, pod) for each in excluding(pod, there)]
    assert len(found) == len(said)
    for text, begins in zip(found, said, strict=True):
        assert text.startswith(begins)


@pytest.mark.parametrize(
    ("requirement", "value", "holds"),
    [
        (SelectorRequirement("k", "Gt", ("5",)), "6", True),
        (SelectorRequirement("k", "Gt", ("5",)), "5", False),
        (SelectorRequirement("k", "Gt", ("5",)), " 6", False),
        (SelectorRequirement("k", "Gt", ("5",)), "1_000", False),
        (SelectorRequirement("k", "Gt", ("5",)), "٦", False),
        (SelectorRequirement("k", "Gt", ("5",)), "99999999999999999999", False),
        (SelectorRequirement("k", "Lt", ("5", "6")), "1", False),
        (SelectorRequirement("k", "In"), "1", False),
        (SelectorRequirement("k", "NotIn"), "1", False),
        (SelectorRequirement("k", "Exists", ("1",)), "1", False),
        (SelectorRequirement("k", "Like", ("1",)), "1", False),
    ],
)
def test_values_that_the_api_server_would_refuse_match_nothing(
    requirement: SelectorRequirement, value: str, holds: bool
) -> None:
    assert matches_term(SelectorTerm((requirement,)), {"k": value}, "n") is holds


def test_names_are_matched_by_one_value_and_no_other_field() -> None:
    named = SelectorTerm(fields=(SelectorRequirement("metadata.name", "In", ("n1",)),))
    assert matches_term(named, {}, "n1")
    assert not matches_term(named, {}, "n2")
    assert not matches_term(SelectorTerm(fields=(SelectorRequirement("metadata.uid", "NotIn", ("n1",)),)), {}, "n2")
    assert not matches_term(SelectorTerm(fields=(SelectorRequirement("metadata.name", "In", ("a", "b")),)), {}, "a")


def test_equal_shapes_become_one() -> None:
    table = ShapeTable()
    first = table.intern(shape(labels=A100))
    assert table.intern(shape(labels=A100)) is first
    assert table.intern(shape(4)) is not first
    assert len(table) == 2


def test_requirements_are_equal_and_hashable_whatever_the_order_of_the_spec() -> None:
    one = {"spec": {"nodeSelector": {"a": "1", "b": "2"}, "tolerations": [{"key": "t", "operator": "Exists"}]}}
    two = {"spec": {"tolerations": [{"operator": "Exists", "key": "t"}], "nodeSelector": {"b": "2", "a": "1"}}}
    first, second = (pod_requirements(each, slots=2, slot=GPU) for each in (one, two))
    assert first == second
    assert hash(first) == hash(second)
    assert first.selected_by == {"a", "b"}
    assert not first.names_nodes


@pytest.mark.parametrize(
    ("resource", "amount", "words"),
    [
        ("cpu", 1000, "1 core"),
        ("cpu", 3500, "3.5 cores"),
        ("memory", 512, "512 bytes of memory"),
        ("memory", 900 * GIB, "900GiB of memory"),
        ("ephemeral-storage", 1536 * (1 << 20), "1.5GiB of ephemeral storage"),
        ("vendor.example/nic", 2, "2 of vendor.example/nic"),
    ],
)
def test_amounts_in_words(resource: str, amount: int, words: str) -> None:
    assert in_words(resource, amount) == words
