"""What becomes of a trial whose allocation ended: the table of docs/reference/experiments.md 5.2, one row per line."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, NamedTuple

import pytest

from libs.states.trial import TrialState
from services.scheduler.allocations.exits import ExitKind
from services.scheduler.experiments.trial_reactions import (
    MAX_RESTARTS,
    NO_RETRY,
    Next,
    Reaction,
    TrialExit,
    may_depend_on_logs,
    react,
)

T = TrialState
FAILED, TRANSIENT, INVALID = ExitKind.FAILED, ExitKind.TRANSIENT, ExitKind.INVALID
AGAIN = Reaction(next=Next.RUN_AGAIN)
RESTART = Reaction(next=Next.RUN_AGAIN, counts_as_restart=True)


def end(state: TrialState, error: str | None = None, *, counts: bool = False) -> Reaction:
    return Reaction(next=Next.END, state=state, error=error, counts_as_restart=counts)


class Case(NamedTuple):
    name: str
    facts: dict[str, Any]
    expected: Reaction


ACTIVE = {"state": T.ACTIVE}
CASES = [
    Case("1 stopping and failed", {"state": T.STOPPING_CANCELED, "kind": FAILED}, end(T.ERROR)),
    Case("1 stopping and lost", {"state": T.STOPPING_KILLED, "kind": TRANSIENT}, end(T.ERROR)),
    Case("2 stopping completed", {"state": T.STOPPING_COMPLETED}, end(T.COMPLETED)),
    Case("2 stopping canceled", {"state": T.STOPPING_CANCELED, "stopped_early": True}, end(T.CANCELED)),
    Case("2 stopping killed", {"state": T.STOPPING_KILLED}, end(T.CANCELED)),
    Case("2 stopping error", {"state": T.STOPPING_ERROR}, end(T.ERROR)),
    Case("3 stopped by the search", {**ACTIVE, "stopped_by_searcher": True}, end(T.COMPLETED)),
    Case("3 and failed", {**ACTIVE, "stopped_by_searcher": True, "kind": FAILED}, end(T.ERROR)),
    Case("4 can never run", {**ACTIVE, "kind": INVALID, "max_restarts": 5}, end(T.ERROR)),
    Case("time is up", {**ACTIVE, "time_is_up": True}, end(T.COMPLETED)),
    Case("time is up while paused", {"state": T.PAUSED, "time_is_up": True}, end(T.COMPLETED)),
    Case("time is up and node lost", {**ACTIVE, "time_is_up": True, "kind": TRANSIENT}, end(T.COMPLETED)),
    Case("time is up and failed", {**ACTIVE, "time_is_up": True, "kind": FAILED, "max_restarts": 5}, end(T.ERROR)),
    Case("time is up and canceled", {"state": T.STOPPING_CANCELED, "time_is_up": True}, end(T.CANCELED)),
    Case("6 node lost", {**ACTIVE, "kind": TRANSIENT, "max_restarts": 0}, AGAIN),
    Case("6 node lost while paused", {"state": T.PAUSED, "kind": TRANSIENT}, AGAIN),
    Case(
        "7 log policy", {**ACTIVE, "kind": FAILED, "max_restarts": 5, "retries_canceled": True}, end(T.ERROR, NO_RETRY)
    ),
    Case("7 not for lost nodes", {**ACTIVE, "kind": TRANSIENT, "retries_canceled": True}, AGAIN),
    Case("8 first failure", {**ACTIVE, "kind": FAILED, "max_restarts": 1}, RESTART),
    Case("8 failure while paused", {"state": T.PAUSED, "kind": FAILED, "max_restarts": 1}, RESTART),
    Case("8 internal error", {**ACTIVE, "kind": ExitKind.INTERNAL, "max_restarts": 1}, RESTART),
    Case(
        "8 last failure",
        {**ACTIVE, "kind": FAILED, "max_restarts": 1, "restarts": 1},
        end(T.ERROR, MAX_RESTARTS, counts=True),
    ),
    Case("8 none allowed", {**ACTIVE, "kind": FAILED}, end(T.ERROR, MAX_RESTARTS, counts=True)),
    Case("9 exit 0", {**ACTIVE, "stopped_early": True}, end(T.COMPLETED)),
    Case("9 exit 0 while paused", {"state": T.PAUSED, "stopped_early": True}, end(T.COMPLETED)),
    Case("10 announced its exit", {**ACTIVE, "early_exit": True}, end(T.COMPLETED)),
    Case("11 preempted or killed", ACTIVE, AGAIN),
    Case("11 preempted by a pause", {"state": T.PAUSED}, AGAIN),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_reaction(case: Case) -> None:
    assert react(TrialExit(**case.facts)) == case.expected


@pytest.mark.parametrize(
    ("facts", "depends"),
    [
        ({**ACTIVE, "kind": FAILED, "max_restarts": 1}, True),
        ({**ACTIVE, "kind": FAILED, "max_restarts": 0}, True),
        ({**ACTIVE, "kind": TRANSIENT}, False),
        ({"state": T.STOPPING_KILLED, "kind": FAILED}, False),
        ({**ACTIVE, "stopped_early": True}, False),
    ],
)
def test_only_failures_that_count_wait_for_logs(facts: dict[str, Any], depends: bool) -> None:
    assert may_depend_on_logs(TrialExit(**facts)) is depends
