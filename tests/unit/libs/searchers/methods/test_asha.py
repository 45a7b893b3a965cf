"""ASHA: the worked trace row by row, and what trials that misbehave may not do to a search."""

import json
import sys
from typing import Any

import pytest
from msgspec import Struct

from libs.searchers.events import ExitedReason
from libs.searchers.methods.asha import Rung
from libs.searchers.searcher import Searcher
from tests.unit.libs.searchers.simulation import Run

SECTION = {
    "name": "async_halving",
    "metric": "loss",
    "smaller_is_better": True,
    "time_metric": "batches",
    "max_time": 9,
    "num_rungs": 3,
    "divisor": 3,
    "max_trials": 8,
    "max_concurrent_trials": 3,
}
HPARAMS = {"x": {"type": "int", "minval": 0, "maxval": 10}}


def asha_run(**changes: Any) -> Run:
    return Run(Searcher.create({**SECTION, **changes}, HPARAMS, seed=0))


def report(run: Run, number: int, time: Any, loss: Any) -> list[str]:
    trial = run.numbered(number)
    return [run.name(action) for action in run.report(trial, {"loss": loss, "batches": time})]


def exit_early(run: Run, number: int, reason: ExitedReason) -> list[str]:
    return [run.name(action) for action in run.exit_early(run.numbered(number), reason)]


def rungs(run: Run) -> list[str]:
    """Trial numbers at each rung, the best first."""
    state = run.searcher.snapshot()["search_method_state"]
    return [" ".join(str(run.trials[m["request_id"]].number) for m in rung["metrics"]) for rung in state["rungs"]]


class Row(Struct):
    trial: int
    event: tuple[int, float] | ExitedReason
    rungs: list[str]
    actions: list[str]


TRACE = [  # docs/reference/experiments.md 3.4, the worked trace
    Row(1, (1, 0.50), ["1", "", ""], []),
    Row(2, (1, 0.60), ["1 2", "", ""], ["stop T2", "create T4"]),
    Row(3, (1, 0.40), ["3 1 2", "", ""], []),
    Row(1, (2, 0.45), ["3 1 2", "", ""], []),
    Row(4, (1, 0.70), ["3 1 2 4", "", ""], ["stop T4", "create T5"]),
    Row(1, (3, 0.42), ["3 1 2 4", "1", ""], []),
    Row(3, (3, 0.35), ["3 1 2 4", "3 1", ""], []),
    Row(5, (3, 0.30), ["5 3 1 2 4", "5 3 1", ""], []),
    Row(5, (9, 0.20), ["5 3 1 2 4", "5 3 1", "5"], ["stop T5", "create T6"]),
    Row(6, ExitedReason.ERRORED, ["5 3 1 2 4 6", "5 3 1", "5"], ["create T7"]),
    Row(3, (9, 0.25), ["5 3 1 2 4 6", "5 3 1", "5 3"], ["stop T3", "create T8"]),
    Row(7, ExitedReason.INVALID_HP, ["5 3 1 2 4 6", "5 3 1", "5 3"], ["stop T7", "create T9"]),
    Row(8, (1, 0.10), ["8 5 3 1 2 4 6", "5 3 1", "5 3"], []),
    Row(9, (1, 0.15), ["8 9 5 3 1 2 4 6", "5 3 1", "5 3"], []),
    Row(8, (9, 0.05), ["8 9 5 3 1 2 4 6", "8 5 3 1", "8 5 3"], ["stop T8"]),
]


def test_worked_trace() -> None:
    run = asha_run()
    assert [run.name(action) for action in run.start()] == ["create T1", "create T2", "create T3"]
    for row in TRACE:
        if isinstance(row.event, ExitedReason):
            actions = exit_early(run, row.trial, row.event)
        else:
            actions = report(run, row.trial, *row.event)
        assert (actions, rungs(run)) == (row.actions, row.rungs)
    state = run.searcher.snapshot()["search_method_state"]
    assert state["rungs"][0]["metrics"][-1]["metric"] == sys.float_info.max
    assert list(state["early_exit_trials"]) == [run.numbered(number).create.request_id for number in (6, 7)]
    assert (state["invalid_trials"], state["trials_completed"]) == (1, 0)


def test_the_sign_of_the_metric_follows_smaller_is_better() -> None:
    run = asha_run(smaller_is_better=False)
    run.start()
    assert report(run, 1, 1, 0.5) == []
    assert report(run, 2, 1, 0.4) == ["stop T2", "create T4"]
    assert report(run, 3, 1, 0.6) == []
    assert rungs(run)[0] == "3 1 2"


@pytest.mark.parametrize(("loss", "rung", "actions"), [(0.4, 1, []), (0.6, 0, ["stop T2", "create T4"])])
def test_first_rung_decisions(loss: float, rung: int, actions: list[str]) -> None:
    run = asha_run()
    run.start()
    assert report(run, 1, 1, 0.5) == []
    assert report(run, 2, 1, loss) == actions
    reached = run.searcher.snapshot()["search_method_state"]["trial_rungs"]
    assert [reached[run.numbered(number).create.request_id] for number in (1, 2)] == [1, rung]


@pytest.mark.parametrize(
    ("before", "value", "place"),
    [([0, 1.5, 2.1], 1.2, 1), ([0, 1.5, 2], 3.0, 3), ([-3, -2, -1], -3.4, 0), ([], 1.2, 0), ([1, 1], 1, 0)],
)
def test_insertion_is_sorted_and_before_equals(before: list[float], value: float, place: int) -> None:
    rung = Rung(1, [])
    for index, metric in enumerate(before):
        rung.insert(f"before {index}", metric)
    assert rung.insert("new", value) == place
    values = [entry.value for entry in rung.metrics]
    assert values == sorted(values)


@pytest.mark.parametrize(
    ("concurrent", "max_trials", "initial"), [(3, 8, 3), (16, 8, 8), (0, 8, 8), (0, 100, 9), (1, 1, 1)]
)
def test_initial_trials(concurrent: int, max_trials: int, initial: int) -> None:
    assert len(asha_run(max_concurrent_trials=concurrent, max_trials=max_trials).start()) == initial


def test_a_stopped_trial_is_not_judged_again() -> None:
    run = asha_run()
    run.start()
    report(run, 1, 1, 0.5)
    assert report(run, 2, 1, 0.6) == ["stop T2", "create T4"]
    before = run.searcher.snapshot()
    assert report(run, 2, 1, 0.6) == report(run, 2, 9, 0.1) == []
    assert run.searcher.snapshot() == before


@pytest.mark.parametrize("reason", list(ExitedReason))
def test_a_stopped_trial_that_then_fails_is_not_replaced_twice(reason: ExitedReason) -> None:
    run = asha_run()
    run.start()
    report(run, 1, 1, 0.5)
    report(run, 2, 1, 0.6)
    assert exit_early(run, 2, reason) == []
    assert rungs(run)[0] == "1 2"


def test_an_invalid_trial_leaves_no_trace_in_the_rungs() -> None:
    run = asha_run()
    run.start()
    report(run, 1, 3, 0.5)
    assert exit_early(run, 1, ExitedReason.INIT_INVALID_HP) == ["stop T1", "create T4"]
    assert report(run, 1, 9, 0.1) == []
    assert rungs(run) == ["", "", ""]


def test_nan_never_beats_anything() -> None:
    run = asha_run()
    run.start()
    assert report(run, 1, 1, "NaN") == []  # the first one always goes on
    assert report(run, 2, 1, "NaN") == ["stop T2", "create T4"]
    assert report(run, 3, 1, 1e308) == []
    snapshot = json.loads(json.dumps(run.searcher.snapshot(), allow_nan=False))
    assert [m["metric"] for m in snapshot["search_method_state"]["rungs"][0]["metrics"]] == [
        1e308,
        "Infinity",
        "Infinity",
    ]
    assert Searcher.restore(SECTION, HPARAMS, snapshot).snapshot() == snapshot


@pytest.mark.parametrize("metrics", [{"batches": 1}, {"loss": 0.5}, {"loss": "high", "batches": 1}])
def test_reports_without_the_metric_are_ignored_and_can_be_told(metrics: dict[str, Any]) -> None:
    run = asha_run()
    run.start()
    before = run.searcher.snapshot()
    assert run.report(run.numbered(1), metrics) == []
    assert run.searcher.snapshot() == before
    assert run.searcher.missing_metrics(metrics)
    assert not run.searcher.missing_metrics({"loss": 0.5, "batches": 1})


def test_a_trial_that_ends_by_itself_is_not_replaced() -> None:
    run = asha_run()
    run.start()
    report(run, 1, 1, 0.5)
    assert run.exit(run.numbered(1)) == []


def test_progress_counts_reports_then_exits() -> None:
    run = asha_run(max_trials=3, max_concurrent_trials=2)
    run.start()
    assert run.searcher.progress() == 0
    report(run, 1, 1, 0.5)
    assert run.searcher.progress() == pytest.approx(1 / 3.6)
    report(run, 2, 1, 0.6)  # stopped; the third and last trial is created
    report(run, 3, 1, 0.7)
    assert run.searcher.progress() == pytest.approx(3 / 3.6)
    for number in (1, 2, 3):
        run.exit(run.numbered(number))
    assert run.searcher.progress() == 1


def test_shape_of_the_state() -> None:
    run = asha_run()
    run.start()
    report(run, 1, 1, 0.4)
    ids = [trial.create.request_id for trial in run.trials.values()]
    assert run.searcher.snapshot()["search_method_state"] == {
        "rungs": [
            {"units_needed": 1, "metrics": [{"request_id": ids[0], "metric": 0.4}]},
            {"units_needed": 3, "metrics": []},
            {"units_needed": 9, "metrics": []},
        ],
        "trial_rungs": {ids[0]: 1, ids[1]: 0, ids[2]: 0},
        "early_exit_trials": {},
        "trials_completed": 0,
        "invalid_trials": 0,
        "search_method_type": "asha",
    }
