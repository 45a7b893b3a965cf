"""Gangs whose pods are to be near each other (docs/reference/scheduling.md 16, B20)."""

from __future__ import annotations

from datetime import timedelta
from operator import attrgetter

import pytest

from services.scheduler.plan.reasons import WaitReason as W
from services.scheduler.plan.snapshot import Growth, PoolPolicy
from services.scheduler.plan.topology.levels import TopologyRequest
from tests.scenarios.queue.notation import Case, check
from tests.scenarios.queue.virtual_queue import LEVEL, VirtualQueue

LEVELS = "zone rack"
FOUR = {"a1": 4, "a2": 4, "b1": 4, "b2": 4}
RACKS = {"a1": "z/a", "a2": "z/a", "b1": "z/b", "b2": "z/b"}
ZONES = {"a1": 4, "a2": 4, "b1": 4, "b2": 4, "c1": 4, "c2": 4}
IN_ZONES = {"a1": "y/a", "a2": "y/a", "b1": "z/b", "b2": "z/b", "c1": "z/c", "c2": "z/c"}
PREEMPTING = PoolPolicy(preemption=True)


def case(name: str, cluster: dict[str, int], requests: str, starts: str = "", **more: object) -> Case:
    racks = RACKS if cluster is FOUR else IN_ZONES
    return Case(name, cluster, requests, starts, **{"levels": LEVELS, "domains": racks} | more)  # type: ignore[arg-type]


CASES = [
    case(
        "a gang that requires a rack waits where there is room in two",
        FOUR,
        "h 4@a1; i 4@b1; x 2x4 within rack; y 2x4 within rack",
        waits={"x": W.TOPOLOGY, "y": W.TOPOLOGY},
        details={
            "x": "needs 2 pods of 4 slots each in one rack; the rack with the most room has room for 1",
            "y": "needs 2 pods of 4 slots each in one rack",
        },
    ),
    case(
        "those behind it that may be anywhere pass when slots are no longer kept",
        FOUR,
        "h 4@a1; i 4@b1; x 2x4 within rack since 601; y 2x4",
        "y",
        waits={"x": W.TOPOLOGY},
    ),
    case(
        "the rack that lacks least is kept for it",
        FOUR,
        "h 4@a1; i 4@b1 for 60; x 2x4 within rack; y 2x4; z 4",
        "z",
        waits={"x": W.TOPOLOGY, "y": W.NO_ROOM},  # beside z one node is free
        reserved={"x": "b1 b2"},
        places={"z": "a2"},
    ),
    case("it starts in the rack that has room", FOUR, "h 1@a1; x 2x4 within rack", "x", places={"x": "b2 b1"}),
    case(
        "in the rack that has the least free of those with room",
        FOUR,
        "h 1@a1; x 2x3 within rack",
        "x",
        places={"x": "a1 a2"},
    ),
    case(
        "what fits one rack is not spread over two", FOUR, "h 3@a1; i 1@b1; x 2x3 near rack", "x", places={"x": "b1 b2"}
    ),
    case(
        "a preference for racks takes as few as there can be",
        {"a1": 4, "a2": 4, "b1": 4, "b2": 4, "c1": 4, "c2": 4},
        "h 2@a1; i 2@a2; x 3x4 near rack",
        "x",
        domains={"a1": "z/a", "a2": "z/a", "b1": "z/b", "b2": "z/b", "c1": "z/c", "c2": "z/c"},
        places={"x": "b2 b1 c1"},
    ),
    case(
        "and those of one zone before others",
        ZONES,
        "h 4@a1; x 3x4 near rack",
        "x",
        places={"x": "b2 b1 c1"},
    ),
    case(
        "a preference widens to the whole pool",
        ZONES,
        "h 4@b1; i 4@c1; j 4@a1; x 3x4 near rack",
        "x",
    ),
    case("a preference never makes anybody wait", FOUR, "h 4@a1; i 4@b1; x 2x4 near zone", "x"),
    case(
        "a wider level that is required is not left",
        ZONES,
        "h 4@a1; i 4@b1; j 4@c1; k 4@c2; x 2x4 within zone; y 2x1 within zone",
        "y",
        waits={"x": W.TOPOLOGY},
        places={"y": "b2 b2"},
    ),
    case(
        "no rack is large enough",
        FOUR,
        "x 3x4 within rack; y 2x4",
        "y",
        waits={"x": W.NO_SUCH_DOMAIN},
        details={"x": "needs 3 pods of 4 slots each in one rack; the largest rack has room for 2"},
    ),
    case(
        "the pool is too small anyway",
        FOUR,
        "x 5x4 within rack",
        waits={"x": W.TOO_LARGE},
        details={"x": "needs 5 pods of 4 slots each on nodes, which have room for 4"},
    ),
    case(
        "nodes without the label are in no rack",
        FOUR,
        "x 2x4 within rack; y 2x4 near rack",
        "y",
        domains={"a1": "z/-", "a2": "z/-", "b1": "z/b"},
        waits={"x": W.NO_SUCH_DOMAIN},
        details={"x": "needs 2 pods of 4 slots each in one rack; the largest rack has room for 1"},
    ),
    case(
        "no node has the label",
        FOUR,
        "x 2x4 within rack",
        domains={"a1": "z/-", "a2": "z/-"},
        waits={"x": W.NO_SUCH_DOMAIN},
        details={"x": "needs 2 pods of 4 slots each in one rack; no node has the label rack"},
    ),
    case(
        "a level that the pool does not have",
        FOUR,
        "x 2x4 within block; y 2x4 near block",
        "y",
        waits={"x": W.NO_SUCH_DOMAIN},
        details={
            "x": "needs 2 pods of 4 slots each in one block; the resource pool has no level block, but zone, rack"
        },
    ),
    case(
        "racks of one name in two zones are two",
        {"a1": 4, "b1": 4},
        "x 2x4 within rack",
        domains={"a1": "y/r", "b1": "z/r"},
        waits={"x": W.NO_SUCH_DOMAIN},
    ),
    case("a single pod may run anywhere", FOUR, "x 4 within rack", "x", domains={}),
    case(
        "the rack that would do is out of service",
        FOUR,
        "x 2x4 within rack",
        domains={"a1": "z/a", "a2": "z/a", "b1": "z/b", "b2": "z/-"},
        unavailable="a1",
        waits={"x": W.OUT_OF_SERVICE},
    ),
    case(
        "log policies exclude a node of each rack",
        FOUR,
        "x 2x4 within rack not a1,b1",
        waits={"x": W.NODES_EXCLUDED},
    ),
    case(
        "those leave who make room in one rack",
        FOUR,
        "h 4@a1; i 4@b1 np; j 4@b2; k 4@a2; x 2x4[10] within rack",
        preempts="h>x k>x",
        policy=PREEMPTING,
    ),
    case(
        "nobody leaves where that would not make room in one rack",
        FOUR,
        "h 4@a1 np; i 4@b1 np; j 4@b2; k 4@a2; x 2x4[10] within rack",
        waits={"x": W.TOPOLOGY},
        policy=PREEMPTING,
    ),
    case(
        "who is of no use in that rack is spared",
        FOUR,
        "h 4@a1 ran 60; i 4@b1; j 4@b2; x 2x4[10] within rack",
        preempts="h>x",
        policy=PREEMPTING,
    ),
    case(
        "places that are in one rack no longer are given up",
        FOUR,
        "h 4@a1 leaving; x 2x4 within rack nominated a1,b1",
        "x",
        places={"x": "b2 b1"},
    ),
    case(
        "a pool does not grow for who requires a rack: nobody knows where new nodes are",
        FOUR,
        "x 5x4 within rack; y 5x4 near rack",
        waits={"x": W.TOO_LARGE},
        growth=Growth(deadline=timedelta(minutes=15)),
        grows="y 1 pods 1 nodes beside a1,a2,b1,b2",
    ),
    case(
        "who is moved for others that ask for no rack stays in one",
        {"n1": 4, "n2": 4, "n3": 4},
        "a 3@n1,n2 mv within rack; b 1@n3 np; h 4",
        waits={"h": W.NO_ROOM},
        domains={"n1": "z/a", "n2": "z/a", "n3": "z/b"},
        moves_left=5,
    ),
    case(
        "who prefers a rack may leave it",
        {"n1": 4, "n2": 4, "n3": 4},
        "a 3@n1,n2 mv near rack; b 1@n3 np; h 4",
        waits={"h": W.PREEMPTING},
        domains={"n1": "z/a", "n2": "z/a", "n3": "z/b"},
        moves="a>h:n2,n3",
        moves_left=5,
    ),
    case(
        "cores count in each rack",
        FOUR,
        "h 1@a1 cpu 60; x 2x3 within rack cpu 32",
        "x",
        kinds=dict.fromkeys(FOUR, "cpu 64"),
        places={"x": "b2 b1"},
    ),
    case(
        "single pods open no rack while one has room that is in use",
        FOUR,
        "h 4@a1; x 4; y 1; z 4; w 4",
        "x y z",
        places={"x": "a2", "y": "b2", "z": "b1"},
    ),
    case(
        "of those in use the one that has least left",
        {"a1": 4, "a2": 4, "b1": 4, "b2": 4, "c1": 4, "c2": 4, "c3": 4},
        "h 4@a1; i 4@c1; j 1@c2; x 4; y 4",
        "x y",
        domains={"a1": "z/a", "a2": "z/a", "b1": "z/b", "b2": "z/b", "c1": "z/c", "c2": "z/c", "c3": "z/c"},
        places={"x": "a2", "y": "c3"},
    ),
    case(
        "of whole racks one of the zone that is in use",
        ZONES,
        "h 4@c1; i 4@c2; x 4; y 4; z 4",
        "x y z",
        places={"x": "b2", "y": "b1", "z": "a1"},
    ),
    case(
        "nodes in no rack come first: they keep none whole",
        FOUR,
        "h 4@a1; x 4; y 4",
        "x y",
        domains={"a1": "z/a", "a2": "z/a", "b2": "z/b"},
        places={"x": "b1", "y": "a2"},
    ),
    case(
        "what ends at about the same time is together, whichever rack that opens",
        FOUR,
        "g 4@a1; h 2@a2 expected 4000; i 2@b1 expected 90000; x 1 expected 80000",
        "x",
        places={"x": "b1"},
    ),
    case(
        "of nodes where it prolongs nothing the one in the rack with the least left",
        FOUR,
        "g 4@a1; h 2@a2 expected 8000; i 2@b1 expected 90000; x 1 expected 60",
        "x",
        places={"x": "a2"},
    ),
    case(
        "a level of single nodes says nothing of racks",
        FOUR,
        "h 4@a1; x 4; y 4",
        "x y",
        levels="zone rack host",
        domains={node: f"{path}/{node}" for node, path in RACKS.items()},
        places={"x": "a2", "y": "b2"},
    ),
    case(
        "worst fit spreads over racks, too",
        FOUR,
        "h 1@a1; i 1@a2; x 1",
        "x",
        policy=PoolPolicy(fitting="worst"),
        places={"x": "b2"},
    ),
    case(
        "what is kept for a preference is in one rack, where that lacks at most twice as much",
        FOUR,
        "h 2@a1; i 3@a2; j 2@b1; k 4@b2; x 2x4 near rack; y 2x4",
        reserved={"x": "a1 a2"},
    ),
    case(
        "else wherever it lacks least",
        FOUR,
        "h 1@a1; i 4@a2; j 1@b1; k 4@b2; x 2x4 near rack",
        reserved={"x": "a1 b1"},
    ),
    case(
        "in the rack that is free by the same instant",
        FOUR,
        "h 2@a1 for 60; i 4@a2 for 60; j 2@b1 for 60; k 4@b2 for 600; x 2x4 near rack",
        reserved={"x": "a1 a2"},
    ),
    case(
        "never later for the sake of a rack",
        FOUR,
        "h 2@a1 for 60; i 4@a2 for 90; j 2@b1 for 60; k 4@b2 for 600; x 2x4 near rack",
        reserved={"x": "a1 b1"},
    ),
    case(
        "and else in one zone",
        ZONES,
        "h 1@a1; i 4@a2; j 2@b1; k 3@b2; l 2@c1; m 4@c2; x 3x4 near rack",
        reserved={"x": "b1 b2 c1"},
    ),
    case(
        "slots are there, cores are not",
        FOUR,
        "h 1@a1 cpu 60; i 1@b1 cpu 60; x 2x3 within rack cpu 32",
        kinds=dict.fromkeys(FOUR, "cpu 64"),
        waits={"x": W.NO_RESOURCES},
    ),
]


@pytest.mark.parametrize("one", CASES, ids=attrgetter("name"))
def test_topology(one: Case) -> None:
    check(one)


def test_a_gang_that_requires_a_rack_does_not_starve() -> None:
    """Among endless small jobs, of which the rack never has none."""
    policy = PoolPolicy(max_overtakes=20, hold_limit=timedelta(minutes=2))
    nodes = {f"{rack}{number}": 4 for rack in "abc" for number in range(4)}
    queue = VirtualQueue(policy, nodes=nodes, task_minutes=30, racks={node: node[0] for node in nodes})
    for number in range(48):
        queue.submit(f"s{number}", (1,))
        if number % 2:
            queue.step()
    queue.submit("x", (4,) * 4, topology=TopologyRequest(LEVEL, required=True))
    started = False
    while not started and queue.hours < 6:
        for number in range(3):
            queue.submit(f"t{number}", (1,))
        made = queue.step()
        started = any(start.allocation.startswith("x.") for start in made.starts)
    assert started
