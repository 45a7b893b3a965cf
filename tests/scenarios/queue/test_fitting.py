"""Which node a request gets: the first table of docs/reference/scheduling.md 4.5, row by row.

A node is ``slots/used, places/used`` for auxiliary tasks; the request is ``task1``, whose hash decides among equals.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from services.scheduler.plan.planner import plan
from services.scheduler.plan.room.room import hash_of
from services.scheduler.plan.snapshot import (
    FittingPolicy,
    HeldAllocation,
    NodeSlots,
    PendingAllocation,
    PoolPolicy,
    PoolSnapshot,
)
from tests.scenarios.queue.notation import START


class Fit(NamedTuple):
    slots: int
    policy: FittingPolicy
    agent1: str
    agent2: str
    winner: str
    blocked: str = ""


FITS = [
    Fit(0, "best", "4/0,100/0", "4/0,100/0", "agent1"),
    Fit(0, "best", "4/0,100/2", "4/0,100/2", "agent1"),
    Fit(0, "best", "4/0,2/0", "4/0,4/2", "agent1"),
    Fit(0, "best", "4/0,100/1", "4/0,100/0", "agent1"),
    Fit(0, "best", "4/0,2/1", "4/0,2/0", "agent1"),
    Fit(0, "best", "0/0,2/0", "0/0,2/1", "agent2"),
    Fit(0, "worst", "0/0,2/0", "0/0,2/1", "agent1"),
    Fit(0, "best", "0/0,0/0", "0/0,0/0", ""),
    Fit(2, "best", "2/0,0/0", "4/0,0/0", "agent1"),
    Fit(1, "best", "1/0,0/0", "4/0,0/0", "agent1"),
    Fit(1, "best", "4/0,0/0", "1/0,0/0", "agent2"),
    Fit(4, "best", "4/0,0/0", "1/0,0/0", "agent1"),
    Fit(1, "best", "4/0,0/0", "4/0,0/0", "agent1"),
    Fit(2, "best", "2/0,0/0", "4/2,0/0", "agent1"),
    Fit(1, "worst", "2/1,0/0", "4/1,0/0", "agent2"),
    Fit(1, "worst", "4/1,0/0", "2/1,0/0", "agent1"),
    Fit(1, "worst", "2/1,0/0", "5/3,0/0", "agent1"),
    Fit(2, "worst", "2/0,0/0", "5/3,0/0", "agent1"),
    Fit(4, "worst", "4/0,0/0", "4/0,0/0", "agent1"),
    Fit(4, "worst", "8/0,0/0", "4/0,0/0", "agent1"),
    Fit(2, "best", "4/0,0/0", "4/0,0/0", "agent1"),
    Fit(2, "best", "1/0,0/0", "3/0,0/0", "agent2"),
    Fit(1, "best", "4/0,0/0", "4/0,0/0", "", "agent1,agent2"),
    Fit(1, "best", "4/0,0/0", "4/0,0/0", "agent2", "agent1"),
    Fit(1, "best", "4/0,0/0", "4/0,0/0", "agent1", "agent2"),
]


@pytest.mark.parametrize("fit", FITS, ids=str)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_fit(fit: Fit, is_reversed: bool) -> None:
    nodes: list[NodeSlots] = []
    held: list[HeldAllocation] = []
    for name, written in (("agent1", fit.agent1), ("agent2", fit.agent2)):
        (slots, used), (places, used_places) = (map(int, part.split("/")) for part in written.split(","))
        nodes.append(NodeSlots(name=name, slots=slots, max_aux=places))
        pods = [(name, 1)] * used + [(name, 0)] * used_places
        held += [
            HeldAllocation(allocation=f"{name}.{number}", job=name, pods=(pod,)) for number, pod in enumerate(pods)
        ]
    request = PendingAllocation(
        allocation="task1",
        job="task1",
        pods=(fit.slots,),
        priority=42,
        submitted_at=START,
        requested_at=START,
        blocked_nodes=frozenset(filter(None, fit.blocked.split(","))),
    )
    pool = PoolSnapshot(
        nodes=tuple(reversed(nodes) if is_reversed else nodes),
        held=tuple(held),
        pending=(request,),
        policy=PoolPolicy(fitting=fit.policy),
    )
    found = [place.node for start in plan(pool).starts for place in start.placements]
    assert found == ([fit.winner] if fit.winner else [])


def test_hashes_are_those_of_the_reference() -> None:
    assert hash_of("task1") == 4631336409283648972
    assert hash_of("agent1") == 1826116563393030275
    assert hash_of("agent2") == 15318926086002615473
