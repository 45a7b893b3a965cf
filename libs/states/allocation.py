"""States of an allocation (docs/reference/scheduling.md 7): a ladder that is only climbed, so late news does no
harm."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final


class AllocationState(StrEnum):
    PENDING = "PENDING"
    ASSIGNED = "ASSIGNED"
    PULLING = "PULLING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    TERMINATING = "TERMINATING"
    TERMINATED = "TERMINATED"


CLUSTER_PREEMPTS: Final = "preempted by the scheduler"
"""The reason for ending what somebody in the cluster wants to leave (docs/reference/kubernetes.md 10.5)."""
MOVED: Final = "moved to make room for "
"""How the reason begins for ending what starts again on other nodes at once."""
GANG_TAKEN_BACK: Final = "not all of its pods found a place"
"""How the reason begins for ending a gang that does not become whole."""

LADDER: Final = tuple(AllocationState)
_RUNG: Final = {state: rung for rung, state in enumerate(LADDER)}


def most_progressed(*states: AllocationState) -> AllocationState:
    return max(states, key=_RUNG.__getitem__)


def least_progressed(states: Iterable[AllocationState]) -> AllocationState:
    return min(states, key=_RUNG.__getitem__)


def at_least(state: AllocationState, rung: AllocationState) -> bool:
    return _RUNG[state] >= _RUNG[rung]


# What an ACTIVE experiment or trial is shown as, best first; any other state of its allocations shows as QUEUED.
_SHOWN: Final = (AllocationState.RUNNING, AllocationState.STARTING, AllocationState.PULLING)


def shown_as(states: Iterable[AllocationState]) -> str:
    """The displayed state of an ACTIVE experiment or trial, from the states of its live allocations (5.1)."""
    present = set(states)
    return next((state.value for state in _SHOWN if state in present), "QUEUED")
