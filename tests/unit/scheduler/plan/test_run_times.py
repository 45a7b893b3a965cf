"""How long allocations are expected to run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from services.scheduler.plan.forecast.run_times import ExpectedRun, PastRuns, RunKind, expected_end, size_of

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


PAST = PastRuns(
    by_size={(1, "TRIAL", 4): (minutes(10), 3), (1, "TRIAL", 1): (minutes(20), 2)},
    by_owner={(1, "TRIAL"): (minutes(30), 9), (2, "TRIAL"): (minutes(40), 2)},
    by_pool={("default", "TRIAL"): (minutes(50), 99)},
)


class Case(NamedTuple):
    name: str
    kind: RunKind
    expected: ExpectedRun
    declared: timedelta | None = None


def kind(owner: int, slots: int, *, pool: str = "default", task_type: str = "TRIAL") -> RunKind:
    return RunKind(owner=owner, task_type=task_type, pool=pool, slots=slots)


CASES = [
    Case("as those of the same size", kind(1, 7), ExpectedRun(minutes(10), "user")),
    Case("too few of that size", kind(1, 1), ExpectedRun(minutes(30), "user")),
    Case("too few of its user", kind(2, 1), ExpectedRun(minutes(50), "pool")),
    Case("another kind of task", kind(1, 7, task_type="NOTEBOOK"), ExpectedRun(minutes(60), "nothing")),
    Case("another pool", kind(3, 7, pool="other"), ExpectedRun(minutes(60), "nothing")),
    Case("a shorter limit", kind(1, 7), ExpectedRun(minutes(5), "declared"), declared=minutes(5)),
    Case("a longer limit", kind(1, 7), ExpectedRun(minutes(10), "user"), declared=minutes(500)),
    Case("a limit and nothing else", kind(3, 7, pool="o"), ExpectedRun(minutes(500), "declared"), minutes(500)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_runs_are_expected_to_last_as_those_before(case: Case) -> None:
    assert PAST.expect(case.kind, case.declared) == case.expected


def test_sizes_are_doubled_from_class_to_class() -> None:
    assert [size_of(slots) for slots in (0, 1, 2, 3, 4, 5, 8, 9, 16, 17)] == [0, 1, 2, 3, 3, 4, 4, 5, 5, 6]


@pytest.mark.parametrize(("ran", "left"), [(-5, 15), (0, 10), (9, 1), (10, 10), (25, 15), (39, 1), (40, 40)])
def test_a_run_that_outlives_what_was_expected_is_expected_to_take_twice_as_long(ran: int, left: int) -> None:
    assert expected_end(NOW - minutes(ran), minutes(10), NOW) == NOW + minutes(left)
