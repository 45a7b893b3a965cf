"""Attempts that are cut off are not repeated at once, and later each time."""

from __future__ import annotations

from datetime import timedelta
from operator import attrgetter
from typing import Any, NamedTuple

import pytest

from libs.states.allocation import CLUSTER_PREEMPTS, MOVED
from services.scheduler.allocations.termination import NODE_DISABLED
from services.scheduler.experiments.trial_backoff import count_end
from services.scheduler.transactions.rows import TrialRow
from tests.harness import FakeClock
from tests.unit.scheduler.rows import allocation, trial

NOW = FakeClock().now()
SHORT = {"start_time": NOW - timedelta(seconds=59), "end_time": NOW}
LONG = {"start_time": NOW - timedelta(seconds=61), "end_time": NOW}
LOST = {"exit_kind": "TRANSIENT"}


def ends(*attempts: dict[str, Any]) -> tuple[TrialRow, list[float | None]]:
    row = trial()
    pauses = [count_end(row, allocation(**attempt), now=NOW) for attempt in attempts]
    return row, [pause and pause.total_seconds() for pause in pauses]


class Case(NamedTuple):
    name: str
    attempts: list[dict[str, Any]]
    pauses: list[float | None]


CASES = [
    Case("doubles up to a minute", [LOST] * 9, [1, 2, 4, 8, 16, 32, 60, 60, 60]),
    Case("never grows beyond", [LOST] * 99, [1, 2, 4, 8, 16, 32, *[60] * 93]),
    Case("short runs count", [{**LOST, **SHORT}] * 3, [1, 2, 4]),
    Case("a long run begins anew", [LOST, LOST, {**LOST, **LONG}, LOST], [1, 2, 1, 2]),
    Case("so does a failure of its own", [LOST, LOST, {"exit_kind": "FAILED"}, LOST], [1, 2, None, 1]),
    Case("kills that somebody asked for", [{"killed_at": NOW, "kill_reason": "user requested pause"}], [None]),
    Case("kills because of the node", [{"killed_at": NOW, "kill_reason": NODE_DISABLED}], [1]),
    Case("kills because the cluster wants its place", [{"killed_at": NOW, "kill_reason": CLUSTER_PREEMPTS}], [1]),
    Case("kills because it is moved", [{"killed_at": NOW, "kill_reason": f"{MOVED}Trial 3 (Experiment 1)"}], [1]),
    Case("preemption", [{"preempted_at": NOW, "preempt_acked": True}], [None]),
    Case("success", [{"stopped_early": True}], [None]),
    Case("stopped and nobody knows why", [{}], [1]),
]


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_pause(case: Case) -> None:
    row, pauses = ends(*case.attempts)
    assert pauses == case.pauses
    if pauses[-1] is not None:
        assert row.not_before == NOW + timedelta(seconds=pauses[-1])
