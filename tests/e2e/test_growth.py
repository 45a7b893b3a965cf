"""Nothing grows with the number of finished tasks, apart from what is kept about them on purpose."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from libs.bus.bucket import WATCHER_KEPT_S
from tests.harness.footprint import Footprint, footprint
from tests.harness.looking import Looking
from tests.harness.waiting import PATIENCE_S, wait_until
from tests.harness.whole_system import WholeSystem, running_system
from tests.programs import submit

HISTORY = frozenset(
    {
        "experiments",
        "model_definitions",
        "jobs",
        "trials",
        "trial_tasks",
        "tasks",
        "interactive_tasks",
        "generic_tasks",
        "allocations",
        "accelerator_data",
        # Of each allocation, for the reports of usage.
        "allocation_usage",
        # Of each that was told when it starts, for thirty days: how far off that was.
        "estimate_errors",
        "metrics",
        # Of a trial that has reported, some time after it has.
        "metric_groups",
        "metric_summaries",
        # Values of runs in the order of indexes.
        "run_numbers",
        "run_texts",
        "loose_runs",
        "experiment_numbers",
        "best_runs",
        "checkpoints",
        # Until their retention is over.
        "task_logs",
        "log_streams",
        "audit_records",
        # A day after their end.
        "user_sessions",
        "allocation_sessions",
    }
)
"""Tables in which every task leaves something that people may ask for."""
SPARE_DESCRIPTORS = 24
"""Connections that a pool or a client may open while it is busy, and keep."""


@pytest.fixture(scope="module")
def system() -> Iterator[WholeSystem]:
    """Not the shared one, in which other tests leave things behind."""
    with running_system(slots=4) as started:
        yield started


@pytest.fixture(scope="module")
def look(system: WholeSystem) -> Iterator[Looking]:
    with system.http() as http:
        yield Looking(http)


def run_short_tasks(system: WholeSystem, look: Looking, count: int) -> None:
    """A search whose trials end at once, and the tasks that end with it."""
    experiment = submit(
        system.det(),
        "true",
        hyperparameters={"x": {"type": "double", "minval": 0, "maxval": 1}},
        searcher={"name": "random", "metric": "loss", "max_trials": count, "max_concurrent_trials": 8},
    )
    wait_until(
        lambda: look.state(experiment) == "STATE_COMPLETED", timeout_s=120 + 6 * count, every_s=0.5, what="it ends"
    )
    assert len(look.trials(experiment)) == count


def at_rest(system: WholeSystem) -> Footprint:
    """As it is when nothing of finished tasks is under way any more."""
    wait_until(
        lambda: (
            not any(
                system.rows(
                    "SELECT (SELECT count(*) FROM outbox) AS outbox, (SELECT count(*) FROM log_parked) AS parked,"
                    " (SELECT count(*) FROM allocations WHERE NOT exit_processed) AS unprocessed"
                )[0].values()
            )
        ),
        what="everything is said and done",
    )
    wait_until(lambda: not any((system.layout.launcher / "allocations").iterdir()), what="the launcher has cleared up")
    return footprint(system)


def more_than(before: Footprint, after: Footprint) -> dict[str, tuple[int, int]]:
    """What there is more of than before."""
    compared = [
        *((table, before.rows[table], after.rows[table], 0) for table in before.rows.keys() - HISTORY),
        *((f"messages of {name}", was, after.messages[name], 0) for name, was in before.messages.items()),
        *((f"consumers of {name}", was, after.consumers[name], 0) for name, was in before.consumers.items()),
        ("files", before.files, after.files, 0),
        *(
            (f"descriptors of {name}", was, after.descriptors[name], SPARE_DESCRIPTORS)
            for name, was in before.descriptors.items()
        ),
    ]
    return {name: (was, now) for name, was, now, spare in compared if now > was + spare}


def left_behind(system: WholeSystem, before: Footprint) -> dict[str, tuple[int, int]]:
    """What there is more of than before, and stays."""
    more = more_than(before, at_rest(system))
    # Watches that ended without a word are forgotten by the bus a minute later.
    deadline = time.monotonic() + PATIENCE_S + WATCHER_KEPT_S
    while more and time.monotonic() < deadline:
        time.sleep(1)
        more = more_than(before, at_rest(system))
    return more


@pytest.mark.parametrize(
    "count",
    [pytest.param(12, marks=pytest.mark.slow), pytest.param(500, marks=[pytest.mark.chaos, pytest.mark.timeout(3600)])],
    ids=str,
)
def test_finished_tasks_leave_nothing_that_grows(system: WholeSystem, look: Looking, count: int) -> None:
    run_short_tasks(system, look, 4)
    before = at_rest(system)
    run_short_tasks(system, look, count)
    assert left_behind(system, before) == {}
