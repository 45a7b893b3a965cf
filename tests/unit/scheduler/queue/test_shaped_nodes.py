"""Nodes of a reported capacity become what plans ask: nothing is lost, and what is not known holds nobody back."""

from __future__ import annotations

from typing import Any

import msgspec

from libs.events.capacity import NodeCapacity, PoolCapacity
from libs.events.node_shapes import ReportedShape, ReportedTaint
from services.scheduler.plan.nodes.requirements import PodRequirements
from services.scheduler.plan.nodes.shapes import UNKNOWN, ShapeTable
from services.scheduler.plan.nodes.taints import NodeTaint
from services.scheduler.plan.nodes.unmet import UnmetCode, unmet
from services.scheduler.queue.shaped_nodes import shaped_nodes

GIB = 1 << 30
SHAPE = ReportedShape(
    labels={"gpu": "a100"},
    name_labels=("kubernetes.io/hostname",),
    taints=(ReportedTaint(key="spot", effect="NoExecute"),),
    unschedulable=True,
    ready=False,
    bad=("xid",),
    allocatable={"memory": 4 * GIB, "pods": 110},
    claims_only=True,
)


def capacity(*nodes: NodeCapacity, shapes: tuple[ReportedShape, ...] = (SHAPE,)) -> PoolCapacity:
    said = PoolCapacity(pool="p", backend="kubernetes", nodes=nodes, shapes=shapes)
    return msgspec.json.decode(msgspec.json.encode(said), type=PoolCapacity)


def test_a_node_is_its_shape_with_what_is_its_own() -> None:
    own = NodeCapacity(name="n1", shape=0, labels={"rack": "r1"}, spare={"memory": 5}, foreign={"memory": 7, "pods": 1})
    table = ShapeTable()
    (found,) = shaped_nodes(capacity(own), table)
    assert found.labels == (("kubernetes.io/hostname", "n1"), ("rack", "r1"))
    shape = found.shape
    assert (shape.labels, shape.taints) == ((("gpu", "a100"),), (NodeTaint("spot", "", "NoExecute"),))
    assert (shape.unschedulable, shape.ready, shape.bad, shape.offers_claims_only) == (True, False, ("xid",), True)
    assert dict(found.taken((("memory", 100),))) == {"memory": 102, "pods": 1}
    (again,) = shaped_nodes(capacity(own), table)
    assert again.shape is shape


def test_all_of_a_node_is_to_be_had_though_its_shape_is_rounded_down() -> None:
    shape = ReportedShape(allocatable={"memory": 4 * GIB, "pods": 110})
    (found,) = shaped_nodes(
        capacity(NodeCapacity(name="n", shape=0, spare={"memory": 10}), shapes=(shape,)), ShapeTable()
    )
    for amount, code in ((4 * GIB + 10, None), (4 * GIB + 11, UnmetCode.RESOURCE)):
        pod = PodRequirements(requests=(("memory", amount),))
        missed = unmet(pod, found.shape, name=found.name, labels=found.labels, taken=found.taken())
        assert (missed and missed.code) == code


def test_nothing_is_held_against_nodes_of_which_nothing_is_known() -> None:
    """As a launcher of the release before reports them, or one that may not see nodes."""
    before = (
        b'{"type":"pool.capacity","pool":"p","backend":"kubernetes","nodes":[{"name":"n","devices":[{"id":"000"}]}]}'
    )
    (found,) = shaped_nodes(msgspec.json.decode(before, type=PoolCapacity), ShapeTable())
    assert found.shape is UNKNOWN
    pod = PodRequirements(node_selector=(("gpu", "a100"),), requests=(("memory", GIB),))
    assert unmet(pod, found.shape, name="n") is None
    (beyond,) = shaped_nodes(capacity(NodeCapacity(name="n", shape=7)), ShapeTable())
    assert beyond.shape is UNKNOWN


def test_the_release_before_reads_what_is_left_out_as_it_was() -> None:
    class Former(msgspec.Struct, frozen=True, kw_only=True):
        """The fields of a node as they were, all of them written."""

        name: str
        addresses: tuple[str, ...] = ()
        registered_at: str = ""
        slot_type: str = "cpu"
        devices: tuple[dict[str, Any], ...] = ()
        enabled: bool = True
        draining: bool = False
        aux_containers: tuple[str, ...] = ()

    said = msgspec.json.encode(NodeCapacity(name="n", shape=3, labels={"a": "b"}, enabled=False))
    assert msgspec.json.decode(said, type=Former) == Former(name="n", enabled=False)
