"""Which nodes a trial that was moved is kept off, where the cluster's own scheduler binds its pods."""

from __future__ import annotations

import msgspec

from services.scheduler.plan.snapshot import EPOCH, PendingAllocation, Placement
from services.scheduler.queue.moving.moves import NO_MOVES, OpenMoves, kept_from

HEAD = PendingAllocation(
    allocation="head",
    job="head",
    pods=(4, 4),
    priority=42,
    submitted_at=EPOCH,
    requested_at=EPOCH,
    nominated=(Placement("n1", 4), Placement("n2", 4)),
)
OTHER = msgspec.structs.replace(HEAD, allocation="other", nominated=(Placement("n9", 4),))
MOVES = OpenMoves(places={"moved": (Placement("n2", 2), Placement("n3", 2))}, made_room_for={"moved": "head"})


def test_a_trial_is_kept_off_the_nodes_of_whom_it_was_moved_for_but_for_its_own() -> None:
    assert kept_from(MOVES, "moved", [HEAD, OTHER]) == ["n1"]


def test_from_nothing_when_that_one_does_not_wait_any_more() -> None:
    assert kept_from(MOVES, "moved", [OTHER]) == []


def test_others_are_kept_off_nothing() -> None:
    assert kept_from(MOVES, "other", [HEAD, OTHER]) == []
    assert kept_from(NO_MOVES, "moved", [HEAD]) == []
