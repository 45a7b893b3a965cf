"""Growing pools: for whom the cluster is asked for nodes, for how many, and what becomes of those that come.
Source: docs/reference/scheduling.md 16 (B9)."""

from __future__ import annotations

from datetime import timedelta
from operator import attrgetter
from typing import Any

import pytest

from services.scheduler.plan.nodes.amounts import amounts
from services.scheduler.plan.nodes.shapes import NodeShape, ShapedNode
from services.scheduler.plan.nodes.taints import NodeTaint
from services.scheduler.plan.reasons import WaitReason as W
from services.scheduler.plan.snapshot import Growing, Growth, NodeSlots, Placement, PoolPolicy, SlotLimit
from tests.scenarios.queue.notation import GPU, NOW, Case, check

DEADLINE = timedelta(minutes=15)
UNTIL = NOW + DEADLINE
PREEMPTIVE = PoolPolicy(preemption=True)


def template(slots: int = 4, *, labels: dict[str, str] | None = None, taint: str = "", cpu: int = 64) -> NodeSlots:
    shape = NodeShape(
        labels=tuple((labels or {}).items()),
        taints=(NodeTaint(taint),) if taint else (),
        allocatable=amounts({GPU.name: slots, "cpu": cpu * 1000, "pods": 110}),
    )
    return NodeSlots(name="", slots=slots, max_aux=100, shaped=ShapedNode(name="", shape=shape))


def growth(**said: Any) -> Growth:
    return Growth(deadline=DEADLINE, **said)


def for_x(pods: int, nodes: int, *, known: str = "", beside: str = "", slots: int = 4, until_s: int = 900) -> Growing:
    return Growing(
        allocation="x",
        pods=pods,
        nodes=nodes,
        node_slots=slots,
        gives_up_at=NOW + timedelta(seconds=until_s),
        known_nodes=frozenset(known.split(",") if known else ()),
        places=tuple(Placement(node, slots) for node in beside.split(",") if node),
    )


def growing(pods: int, nodes: int, **said: Any) -> Growth:
    return growth(template=template(), now=for_x(pods, nodes, **said))


ASKS = [
    Case(
        "an empty pool asks for what its template holds",
        {},
        "x 2x4",
        waits={"x": W.TOO_LARGE},
        growth=growth(template=template()),
        grows="x 2 pods 2 nodes",
    ),
    Case(
        "small pods share new nodes",
        {},
        "x 5x2",
        waits={"x": W.TOO_LARGE},
        growth=growth(template=template()),
        grows="x 5 pods 3 nodes",
    ),
    Case("without a template nobody knows what an empty pool would get", {}, "x 1", growth=growth()),
    Case(
        "nodes that are there tell what others will be",
        {"a1": 4},
        "h 4@a1; x 4",
        growth=growth(),
        grows="x 1 pods 1 nodes",
    ),
    Case(
        "a gang asks for what is missing, and holds what there is",
        {"a1": 4, "a2": 4, "a3": 4},
        "h 4@a1; x 4x4",
        waits={"x": W.TOO_LARGE},
        growth=growth(),
        grows="x 2 pods 2 nodes beside a2,a3",
    ),
    Case(
        "what the plan divides asks for pods as large as they may be",
        {},
        "x 16 most 8",
        waits={"x": W.TOO_LARGE},
        growth=growth(template=template(8)),
        grows="x 2 pods 2 nodes",
    ),
    Case(
        "and as new nodes take",
        {},
        "x 16 most 8",
        waits={"x": W.TOO_LARGE},
        growth=growth(template=template()),
        grows="x 4 pods 4 nodes",
    ),
    Case(
        "of one size, which its slots are divided by",
        {},
        "x 12 most 8",
        waits={"x": W.TOO_LARGE},
        growth=growth(template=template(8)),
        grows="x 2 pods 2 nodes",
    ),
    Case(
        "without such a size it asks for nothing",
        {},
        "x 13 most 8",
        waits={"x": W.TOO_LARGE},
        growth=growth(template=template(8)),
    ),
    Case(
        "it holds what there is of such pods",
        {"a1": 8, "a2": 8},
        "h 6@a2; x 16 most 8",
        waits={"x": W.NO_ROOM},
        growth=growth(),
        grows="x 1 pods 1 nodes beside a1",
    ),
    Case(
        "where it has room in pods of several sizes, nothing is asked for",
        {"a1": 8, "a2": 6, "a3": 2},
        "x 16 most 8",
        "x",
        growth=growth(),
    ),
    Case("what no new node could run asks for nothing", {}, "x 5", growth=growth(template=template())),
    Case(
        "and lets the next one ask",
        {},
        "y 5; x 4",
        waits={"y": W.TOO_LARGE},
        growth=growth(template=template()),
        grows="x 1 pods 1 nodes",
    ),
    Case(
        "a template without the label that is asked for is of no use",
        {},
        "x 4 on gpu=a100",
        growth=growth(template=template(labels={"gpu": "v100"})),
    ),
    Case(
        "one with it is",
        {},
        "x 4 on gpu=a100",
        growth=growth(template=template(labels={"gpu": "a100"})),
        grows="x 1 pods 1 nodes",
    ),
    Case(
        "nor is one with a taint",
        {},
        "x 4 on gpu=a100",
        growth=growth(template=template(labels={"gpu": "a100"}, taint="team")),
    ),
    Case(
        "unless it is tolerated",
        {},
        "x 4 on gpu=a100 tolerates team",
        growth=growth(template=template(labels={"gpu": "a100"}, taint="team")),
        grows="x 1 pods 1 nodes",
    ),
    Case("cores count beside slots", {}, "x 4x1 cpu 30", growth=growth(template=template()), grows="x 4 pods 2 nodes"),
    Case("a pool asks for no more nodes than it may have", {"a1": 4}, "h 4@a1; x 2x4", growth=growth(max_nodes=2)),
    Case(
        "and for as many as that",
        {"a1": 4},
        "h 4@a1; x 2x4",
        growth=growth(max_nodes=3),
        grows="x 2 pods 2 nodes",
    ),
    Case(
        "nobody asks who has room once others have left",
        {"a1": 4},
        "h 4@a1 leaving; x 4",
        waits={"x": W.NO_ROOM},
        growth=growth(),
    ),
    Case(
        "nor for whom others are asked to leave",
        {"a1": 4},
        "h 4[99]@a1; x 4[1]",
        waits={"x": W.PREEMPTING},
        preempts="h>x",
        policy=PREEMPTIVE,
        growth=growth(),
    ),
    Case(
        "nodes are no help against a limit",
        {"a1": 4},
        "h 4@a1; x 4 under ann",
        waits={"x": W.SLOT_LIMIT},
        limits={"ann": SlotLimit(holder="user ann", most=2)},
        growth=growth(),
    ),
    Case(
        "one gang at a time: the first of the queue",
        {"a1": 4},
        "h 4@a1; y 4[50]; x 4[40]",
        growth=growth(),
        grows="x 1 pods 1 nodes",
    ),
    Case(
        "what nodes did not come for lets others ask",
        {"a1": 4},
        "h 4@a1; y 4[40]; x 4[50]",
        details={
            "y": "needs 4 free slots on one node; 0 of 4 slots are free; "
            "the cluster has not added nodes in time, and is asked again after 2030-01-02 00:10 UTC",
        },
        growth=growth(rests_until={"y": NOW + timedelta(minutes=10)}),
        grows="x 1 pods 1 nodes",
    ),
    Case(
        "until its rest is over",
        {"a1": 4},
        "h 4@a1; x 4[40]; y 4[50]",
        growth=growth(rests_until={"x": NOW}),
        grows="x 1 pods 1 nodes",
    ),
    Case(
        "work without slots asks too",
        {},
        "x 0",
        waits={"x": W.TOO_LARGE},
        growth=growth(template=template()),
        grows="x 1 pods 1 nodes",
    ),
]
GOES_ON = [
    Case(
        "while nodes come it says what was asked for",
        {"a1": 4},
        "h 4@a1; x 2x4",
        waits={"x": W.POOL_GROWING},
        details={"x": "asks the cluster for 2 more nodes with 4 slots each; gives up at 2030-01-02 00:15 UTC"},
        growth=growing(2, 2, known="a1"),
    ),
    Case(
        "one node is said as one",
        {},
        "x 4",
        details={"x": "asks the cluster for 1 more node with 4 slots; gives up at 2030-01-02 00:15 UTC"},
        growth=growing(1, 1),
    ),
    Case(
        "it starts when all nodes are there",
        {"a1": 4, "b1": 4, "b2": 4},
        "h 4@a1; x 2x4",
        "x",
        places={"x": "b1 b2"},
        growth=growing(2, 2, known="a1"),
        grows="end x",
    ),
    Case(
        "on its places and the nodes that came",
        {"a1": 4, "a2": 4, "b1": 4},
        "h 4@a1; x 2x4",
        "x",
        places={"x": "a2 b1"},
        growth=growing(1, 1, known="a1,a2", beside="a2"),
        grows="end x",
    ),
    Case(
        "nobody else gets a node that came, or a place that is held, however important",
        {"a1": 4, "a2": 4, "b1": 4},
        "h 4@a1; x 3x4; y 4[1]; z 1[99]",
        waits={"x": W.POOL_GROWING, "y": W.NO_ROOM, "z": W.BEHIND_PRIORITY},
        growth=growing(2, 2, known="a1,a2", beside="a2"),
    ),
    Case(
        "who can use nothing but such a node waits for what is kept",
        {"b1": 4},
        "x 2x4; y 4",
        waits={"x": W.POOL_GROWING, "y": W.BEHIND_RESERVATION},
        growth=growing(2, 2),
    ),
    Case(
        "so does what the plan divides, in the pods that were asked for",
        {"a1": 4, "b1": 4},
        "x 8 most 4",
        "x",
        places={"x": "a1:4 b1:4"},
        growth=growing(1, 1, known="a1", beside="a1"),
        grows="end x",
    ),
    Case(
        "which waits for the rest of them",
        {"a1": 4, "b1": 4},
        "x 12 most 4",
        waits={"x": W.POOL_GROWING},
        growth=growing(2, 2, known="a1", beside="a1"),
    ),
    Case(
        "it starts although something more important waits",
        {"a1": 4, "b1": 4},
        "h 4@a1; y 4[1]; x 4[50]",
        "x",
        waits={"y": W.NO_ROOM},
        growth=growing(1, 1, known="a1"),
        grows="end x",
    ),
    Case(
        "or sooner, where others end",
        {"a1": 4},
        "x 4",
        "x",
        growth=growing(1, 1, known="a1"),
        grows="end x",
    ),
    Case(
        "a more important one comes first there",
        {"a1": 4},
        "x 4[50]; y 4[1]",
        "y",
        waits={"x": W.POOL_GROWING},
        growth=growing(1, 1, known="a1"),
    ),
    Case(
        "a place that is lost is asked for",
        {"a1": 4, "a2": 4},
        "h 4@a1; x 2x4",
        waits={"x": W.POOL_GROWING},
        details={"x": "asks the cluster for 2 more nodes with 4 slots each; gives up at 2030-01-02 00:15 UTC"},
        unavailable="a2",
        growth=growing(1, 1, known="a1,a2", beside="a2"),
        grows="x 2 pods 2 nodes",
    ),
    Case(
        "and so is one that somebody else took",
        {"a1": 4, "a2": 3},
        "h 4@a1; x 2x4",
        waits={"x": W.POOL_GROWING},
        growth=growing(1, 1, known="a1,a2", beside="a2"),
        grows="x 2 pods 2 nodes",
    ),
    Case(
        "when time is over others may use what came",
        {"b1": 4},
        "x 2x4; y 4",
        "y",
        waits={"x": W.TOO_LARGE},
        growth=growing(2, 2, until_s=0),
        grows="gives up x",
    ),
    Case(
        "nothing is asked for what is gone", {"a1": 4}, "h 4@a1; y 4", growth=growing(1, 1, known="a1"), grows="end x"
    ),
    Case(
        "nor for what the plan divides by now, which gets no more slots than it asks for",
        {"a1": 4, "b1": 8},
        "x 8 most 4",
        "x",
        places={"x": "a1:4 b1:4"},
        growth=growing(1, 1, known="a1", beside="a1"),
        grows="end x",
    ),
    Case(
        "nor for what has pods of another size by now",
        {"a1": 4, "b1": 4},
        "x 4x2",
        "x",
        growth=growing(1, 1, known="a1", beside="a1"),
        grows="end x",
    ),
    Case(
        "nor for what requires one domain by now",
        {"a1": 4, "b1": 4},
        "x 2x4 within rack",
        waits={"x": W.NO_SUCH_DOMAIN},
        levels="rack",
        domains={"a1": "r1", "b1": "r2"},
        growth=growing(1, 1, known="a1", beside="a1"),
        grows="end x",
    ),
    Case(
        "nor for what a limit keeps from starting",
        {"a1": 4},
        "h 4@a1; x 4 under ann",
        waits={"x": W.SLOT_LIMIT},
        limits={"ann": SlotLimit(holder="user ann", most=2)},
        growth=growing(1, 1, known="a1"),
        grows="end x",
    ),
    Case(
        "a quota may count placeholders for a moment, so that it ends nothing",
        {"a1": 4},
        "h 4@a1; x 4",
        waits={"x": W.POOL_QUOTA},
        quota=4,
        growth=growing(1, 1, known="a1"),
    ),
    Case(
        "its places count against limits",
        {"a1": 4, "b1": 4},
        "x 2x4 under ann; y 4 under ann",
        "x",
        waits={"y": W.SLOT_LIMIT},
        limits={"ann": SlotLimit(holder="user ann", most=8)},
        growth=growing(1, 1, known="a1", beside="a1"),
        grows="end x",
    ),
    Case(
        "nobody is asked to leave for it",
        {"a1": 4},
        "h 4[99]@a1; x 4[1]",
        waits={"x": W.POOL_GROWING},
        policy=PREEMPTIVE,
        growth=growing(1, 1, known="a1"),
    ),
    Case(
        "nodes that came and do not do are waited for in vain",
        {"b1": 4},
        "x 4 on gpu=a100",
        waits={"x": W.POOL_GROWING},
        kinds={"b1": "gpu=v100"},
        growth=growing(1, 1),
    ),
]


@pytest.mark.parametrize("case", [*ASKS, *GOES_ON], ids=attrgetter("name"))
def test_a_pool_grows_for_one_gang_at_a_time(case: Case) -> None:
    check(case)
