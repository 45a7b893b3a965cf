"""What a pod may run on, by labels, taints, the state of nodes, and what others leave of them (docs/reference/
scheduling.md 4.2 and 16)."""

from __future__ import annotations

from operator import attrgetter

import pytest

from services.scheduler.plan.reasons import WaitReason as W
from services.scheduler.plan.snapshot import PoolPolicy
from tests.scenarios.queue.notation import Case, check

MIXED = {"a": 8, "b": 8, "v": 8}
GPUS = {"a": "gpu=a100", "b": "gpu=a100", "v": "gpu=v100"}
PREEMPTING = PoolPolicy(preemption=True)

CASES = [
    Case("goes where its labels are", MIXED, "x 1 on gpu=v100", "x", kinds=GPUS, places={"x": "v"}),
    Case(
        "a gang goes where all of it may run",
        MIXED,
        "x 2x8 on gpu=a100; y 8",
        "x y",
        kinds=GPUS,
        places={"y": "v"},
    ),
    Case(
        "one pod too many for the nodes with its labels",
        MIXED,
        "x 3x8 on gpu=a100",
        kinds=GPUS,
        waits={"x": W.TOO_LARGE},
        details={"x": "needs 3 pods of 8 slots each on nodes with gpu=a100, which have room for 2"},
    ),
    Case(
        "nodes that nobody wants do not hide what is missing",
        {"a": 4, "v": 8, "w": 8},
        "x 8 on gpu=a100",
        kinds={**GPUS, "w": "gpu=v100"},
        waits={"x": W.TOO_LARGE},
        details={"x": "needs 8 slots with gpu=a100; the largest such node has 4"},
    ),
    Case(
        "no such label",
        MIXED,
        "x 1 on gpu=h100; y 1 on gpu=v100",
        "y",
        kinds=GPUS,
        waits={"x": W.NO_SUCH_NODE},
        details={"x": "needs a node with gpu=h100, which no node has; 3 nodes meet all other conditions"},
    ),
    Case(
        "too large for each node with its labels",
        {"a": 4, "v": 8},
        "x 8 on gpu=a100",
        kinds=GPUS,
        waits={"x": W.TOO_LARGE},
        details={"x": "needs 8 slots with gpu=a100; the largest such node has 4"},
    ),
    Case(
        "only slots are known",
        {"a": 4, "b": 8},
        "x 17; y 3x8",
        waits={"x": W.TOO_LARGE, "y": W.TOO_LARGE},
        details={
            "x": "needs 17 slots on one node; the largest node has 8",
            "y": "needs 3 pods of 8 slots each on nodes, which have room for 1",
        },
    ),
    Case(
        "more memory or cores than a node has",
        {"a": 8},
        "x 1 cpu 100; y 1",
        "y",
        kinds={"a": "cpu 64"},
        waits={"x": W.NO_SUCH_NODE},
        details={"x": "needs 100 cores; the largest such node has 64 cores"},
    ),
    Case(
        "pods of others hold the cores",
        {"a": 8},
        "x 1 cpu 60",
        kinds={"a": "cpu 64 foreign 8"},
        waits={"x": W.FOREIGN_PODS},
    ),
    Case(
        "a taint that it does not tolerate",
        {"a": 8},
        "x 1 cpu 1; y 1 tolerates team",
        "y",
        kinds={"a": "taint team"},
        waits={"x": W.NO_SUCH_NODE},
        details={"x": "does not tolerate the taint team:NoSchedule; 1 node meets all other conditions"},
    ),
    Case(
        "a node that is to be taken away is the last choice, though it is fuller",
        {"a": 8, "b": 8},
        "r 4@a; x 1",
        "x",
        places={"x": "b"},
        kinds={"a": "candidate", "b": ""},
    ),
    Case(
        "it is used where there is no room elsewhere",
        {"a": 8, "b": 8},
        "r 8@b; x 1",
        "x",
        places={"x": "a"},
        kinds={"a": "candidate", "b": ""},
    ),
    Case(
        "and where a part of a gang needs it",
        {"a": 8, "b": 8},
        "x 2x8; y 1",
        "x",
        waits={"y": W.NO_ROOM},
        kinds={"a": "candidate", "b": ""},
    ),
    Case(
        "work without slots stays off it, too",
        {"a": 8, "b": 8},
        "r 4@a; x 0",
        "x",
        places={"x": "b"},
        kinds={"a": "candidate", "b": ""},
    ),
    Case(
        "so does what is divided into pods",
        {"a": 8, "b": 4, "c": 4},
        "x 8 most 8",
        "x",
        places={"x": "b:4 c:4"},
        kinds={"a": "candidate", "b": "", "c": ""},
    ),
    Case(
        "the nodes that would do are cordoned",
        {"a": 8, "v": 8},
        "x 1 on gpu=a100",
        kinds={"a": "gpu=a100 cordoned", "v": "gpu=v100"},
        unavailable="a",
        waits={"x": W.OUT_OF_SERVICE},
        details={"x": "needs a node with gpu=a100 that is not cordoned; 1 node meets all other conditions"},
    ),
    Case(
        "the node that would do is not ready",
        {"a": 8},
        "x 1 on gpu=a100",
        kinds={"a": "gpu=a100 unready"},
        unavailable="a",
        waits={"x": W.OUT_OF_SERVICE},
    ),
    Case(
        "devices that are given out by claims only",
        {"a": 0},
        "x 2 cpu 1",
        kinds={"a": "claims"},
        waits={"x": W.NO_SUCH_NODE},
        details={
            "x": "needs nvidia.com/gpu, but the devices are offered through Dynamic Resource Allocation only; "
            "1 node meets all other conditions"
        },
    ),
    Case(
        "cores run out before slots do",
        {"a": 8},
        "h 1@a cpu 40; x 1 cpu 16; y 1 cpu 16; z 1 cpu 8",
        "x",
        kinds={"a": "cpu 64"},
        waits={"y": W.NO_RESOURCES},
        details={"y": "needs 16 cores"},
    ),
    Case(
        "each pod of a gang needs its cores",
        {"a": 8, "b": 8},
        "x 4x2 cpu 16; y 2x2 cpu 16",
        "x",
        kinds={"a": "cpu 40", "b": "cpu 40"},
        waits={"y": W.NO_RESOURCES},
    ),
    Case(
        "a task without slots needs cores, too",
        {"a": 8},
        "x 8 cpu 60; u 0 cpu 4; t 0 cpu 8",
        "x u",
        kinds={"a": "cpu 64"},
        waits={"t": W.NO_RESOURCES},
    ),
    Case(
        "and leaves those that are kept for who has a reservation",
        {"a": 8},
        "h 4@a cpu 30; x 8 cpu 60; t 0 cpu 4",
        kinds={"a": "cpu 64"},
        waits={"x": W.NO_ROOM, "t": W.NO_RESOURCES},
        reserved={"x": "a"},
    ),
    Case(
        "who waits for other nodes is in nobody's way",
        MIXED,
        "h 8@a; i 8@b; x 8[10] on gpu=a100; y 8[10] on gpu=a100; z 8[10] on gpu=a100; v 4[50] on gpu=v100; w 8[50]",
        "v",
        kinds=GPUS,
        waits={"w": W.BEHIND_PRIORITY},
    ),
    Case(
        "each kind of nodes has its own reservation",
        MIXED,
        "h 4@a; i 4@b; j 4@v; x 2x8 on gpu=a100; y 8 on gpu=v100; z 4 on gpu=v100",
        kinds=GPUS,
        waits={"z": W.BEHIND_RESERVATION},
        reserved={"x": "a b", "y": "v"},
    ),
    Case(
        "nobody leaves a node that it may not use",
        MIXED,
        "h 8@v; i 8@a; j 8@b; x 8[10] on gpu=a100",
        kinds=GPUS,
        preempts="j>x",
        policy=PREEMPTING,
    ),
    Case(
        "who has the cores leaves, too",
        {"a": 8},
        "h 2@a cpu 60; i 2@a cpu 4; x 4[10] cpu 32",
        kinds={"a": "cpu 64"},
        preempts="h>x",
        policy=PREEMPTING,
    ),
    Case(
        "nominated places are given up where the node is no longer one of its own",
        {"a": 8, "b": 8},
        "h 8@a leaving; x 8 on gpu=a100 nominated a",
        "",
        kinds={"a": "gpu=v100", "b": "gpu=v100"},
        waits={"x": W.NO_SUCH_NODE},
    ),
    Case(
        "cores of those that leave for one that was nominated do not come free for one behind it",
        {"a": 9, "b": 9, "c": 9},
        "x 1@a cpu 2; y 1@b cpu 3 for 3600; z 1@a,c leaving cpu 2; "
        "next 2x1 cpu 2 nominated a,c; big 2x1 cpu 3; small 1 cpu 1 np",
        "",
        kinds={"a": "cpu 7", "b": "cpu 3", "c": "cpu 2"},
        waits={"next": W.PREEMPTING, "small": W.BEHIND_RESERVATION},
        reserved={"big": "a b"},
        policy=PREEMPTING,
    ),
    Case(
        "nor cores that come free for one before it",
        {"a": 9, "b": 9, "c": 9},
        "x 1@a cpu 3 for 3600; y 1@b cpu 5; z 1@c cpu 2 for 3600; "
        "big 1 cpu 5 on k=1; next 2x1 cpu 2 on j=1; small 1 cpu 1 on i=1",
        "",
        kinds={"a": "cpu 7 i=1 j=1 k=1", "b": "cpu 5 k=1", "c": "cpu 2 j=1"},
        waits={"next": W.BEHIND_RESERVATION, "small": W.BEHIND_RESERVATION},
        reserved={"big": "a", "next": "a c"},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_what_pods_require(case: Case) -> None:
    check(case)
