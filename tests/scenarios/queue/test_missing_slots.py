"""What those are told that wait for slots: what they need, and how much of it is free."""

from __future__ import annotations

import pytest

from services.scheduler.plan.planner import plan
from services.scheduler.plan.reasons import WaitReason
from tests.scenarios.queue.notation import Case, check, snapshot

EIGHTS = {f"n{i}": 8 for i in range(8)}
A100 = dict.fromkeys(("n0", "n1"), "gpu=a100")
HELD = "h0 8@n0; h1 8@n1; h2 7@n2; h3 7@n3; h4 7@n4; h5 7@n5; h6 6@n6"

CASES = [
    Case(
        "a gang of whole nodes",
        EIGHTS,
        f"{HELD}; x 2x8",
        waits={"x": WaitReason.NO_ROOM},
        details={"x": "needs 2 nodes with 8 free slots; 1 has; 14 of 64 slots are free"},
    ),
    Case(
        "pods of which several share a node",
        {"a": 8, "b": 8},
        "h 6@a; g 5@b; x 3x2",
        waits={"x": WaitReason.NO_ROOM},
        details={"x": "needs 3 times 2 free slots on one node; there is room for 2; 5 of 16 slots are free"},
    ),
    Case(
        "one pod",
        {"a": 8, "b": 8},
        "h 6@a; g 5@b; x 4",
        waits={"x": WaitReason.NO_ROOM},
        details={"x": "needs 4 free slots on one node; 5 of 16 slots are free"},
    ),
    Case(
        "one slot, of which others are kept",
        {"a": 1},
        "h 1@a; x 1",
        waits={"x": WaitReason.NO_ROOM},
        details={"x": "needs 1 free slot; 0 of 1 slot are free"},
    ),
    Case(
        "nodes that it may use alone count",
        {"n0": 8, "n1": 8, "n2": 8},
        "h 8@n0; g 7@n1; x 4 on gpu=a100",
        waits={"x": WaitReason.NO_ROOM},
        details={"x": "needs 4 free slots on one node; 1 of 16 slots is free on the nodes that it may use"},
        kinds={**A100, "n2": "gpu=t4"},
    ),
    Case(
        "the first of its kind is told numbers",
        {"a": 4},
        "h 4@a; x 2; y 2; z 3",
        waits={"x": WaitReason.NO_ROOM, "y": WaitReason.NO_ROOM, "z": WaitReason.NO_ROOM},
        details={
            "x": "needs 2 free slots on one node; 0 of 4 slots are free",
            "y": "",
            "z": "needs 3 free slots on one node; 0 of 4 slots are free",
        },
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_missing_slots(case: Case) -> None:
    check(case)


def test_no_more_are_told_numbers_than_can_be_counted_and_written() -> None:
    many = "; ".join(f"x{i} {i + 1}" for i in range(40))
    made = plan(snapshot(Case("", {"a": 64}, f"h 64@a; {many}")))
    told = [wait.allocation for wait in made.waits if wait.detail]
    assert told == [f"x{i}" for i in range(20)]
