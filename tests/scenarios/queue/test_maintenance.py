"""Nothing starts that would still run when maintenance begins on its nodes (docs/scheduling.md)."""

from __future__ import annotations

from operator import attrgetter

import pytest

from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import PoolPolicy
from tests.scenarios.queue.notation import Case, check

W = WaitReason
TWO = {"a1": 4, "a2": 4}
SHORT = f"{W.NO_ROOM}: needs 4 free slots on one node; "

CASES = [
    Case("what ends before starts", TWO, "x 4 for 300; y 4 for 300", "x y", maintenance="a1 300 600"),
    Case(
        "what would still run starts elsewhere",
        TWO,
        "x 2 for 301; y 2 for 301",
        "x y",
        places={"x": "a2", "y": "a2"},
        maintenance="a1 300 600",
    ),
    Case(
        "where there is nowhere else it waits for the end",
        {"a1": 4},
        "x 1 for 301",
        "",
        {"x": W.MAINTENANCE},
        maintenance="a1 300 600",
    ),
    Case("what has no limit starts while there is time", {"a1": 4}, "x 1", "x", maintenance="a1 300 600"),
    Case("and not in the last minute", {"a1": 4}, "x 1", "", {"x": W.MAINTENANCE}, maintenance="a1 59 600"),
    Case(
        "nothing starts within it",
        {"a1": 4},
        "x 1 for 1; y 1",
        "",
        {"x": W.MAINTENANCE, "y": W.MAINTENANCE},
        maintenance="a1 -10 600",
    ),
    Case("afterwards all goes on", {"a1": 4}, "x 1 for 1; y 1", "x y", maintenance="a1 -600 0"),
    Case(
        "a gang that needs those nodes waits, and keeps nobody waiting",
        TWO,
        "big 2x4 for 900; x 4 for 900; y 4 for 60",
        "x y",
        {"big": W.MAINTENANCE},
        maintenance="a1 300 600",
    ),
    Case("what is too large says so", {"a1": 4}, "x 5 for 900", "", {"x": W.TOO_LARGE}, maintenance="a1 300 600"),
    Case(
        "nodes that log policies exclude are another matter",
        TWO,
        "x 4 for 900 not a2",
        "",
        {"x": W.MAINTENANCE},
        maintenance="a1 300 600",
    ),
    Case(
        "those that are excluded anyway are not under maintenance for it",
        {"a1": 4},
        "x 4 for 900 not a1",
        "",
        {"x": W.NODES_EXCLUDED},
        maintenance="a1 300 600",
    ),
    Case(
        "of two windows each counts", TWO, "x 4 for 200", "", {"x": W.MAINTENANCE}, maintenance="a1 100 600; a2 150 900"
    ),
    Case(
        "a busy node elsewhere is waited for",
        TWO,
        "x 4 for 900; y 4@a2",
        "",
        {"x": W.NO_ROOM},
        maintenance="a1 300 600",
    ),
    Case(
        "nobody leaves a node for it",
        {"a1": 4},
        "x 4[10] for 900; y 4[50]@a1",
        "",
        {"x": W.MAINTENANCE},
        policy=PoolPolicy(preemption=True),
        maintenance="a1 300 600",
    ),
    Case(
        "places that others have left in the meantime are given up",
        {"a1": 4},
        "x 4[10] nominated a1",
        "",
        {"x": W.MAINTENANCE},
        policy=PoolPolicy(preemption=True),
        maintenance="a1 30 600",
    ),
    Case(
        "auxiliary tasks, too",
        {"a1": 4},
        "x 0 for 900; y 0 for 300",
        "y",
        {"x": W.MAINTENANCE},
        maintenance="a1 300 600",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_maintenance(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    ("cluster", "requests", "says"),
    [
        ({"a1": 4}, "x 1 for 301", "waiting for the end of maintenance: a1 from 300 to 600"),
        (TWO, "x 4 for 900; y 4@a2", f"{SHORT}0 of 4 slots are free on the nodes that it may use; a1 from 300 to 600"),
        (TWO, "x 4 for 100; y 4@a1; z 4@a2", f"{SHORT}0 of 8 slots are free"),
    ],
)
def test_those_that_wait_say_which_is_in_their_way(cluster: dict[str, int], requests: str, says: str) -> None:
    made = check(Case("", cluster, requests, maintenance="a1 300 600"))
    assert [wait.sentence for wait in made.waits if wait.allocation == "x"] == [says]
