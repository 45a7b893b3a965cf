"""adaptive_asha: brackets side by side that share a random stream and nothing else."""

from libs.searchers.events import ExitedReason
from libs.searchers.searcher import Searcher
from tests.unit.libs.searchers.simulation import Run

SECTION = {
    "name": "adaptive_asha",
    "metric": "loss",
    "time_metric": "batches",
    "max_time": 90,
    "max_trials": 9,
    "divisor": 3,
    "max_concurrent_trials": 3,
}
HPARAMS = {"x": {"type": "double", "minval": 0, "maxval": 1}}


def adaptive_run() -> Run:
    run = Run(Searcher.create(SECTION, HPARAMS, seed=5))
    run.start()
    return run


def owners(run: Run) -> list[int]:
    table = run.searcher.snapshot()["search_method_state"]["trial_table"]
    return [table[request_id] for request_id in run.trials]


def test_initial_trials_come_in_bracket_order_from_one_stream() -> None:
    run = adaptive_run()
    assert owners(run) == [0, 0, 1]
    plain = Searcher.create({"name": "random", "max_trials": 3}, HPARAMS, seed=5)
    assert [trial.create for trial in run.trials.values()] == plain.initial_trials()


def test_a_replacement_belongs_to_the_bracket_of_the_trial_it_replaces() -> None:
    run = adaptive_run()
    first, second, third = run.trials.values()
    run.report(third, {"loss": 1.0, "batches": 90})
    assert owners(run) == [0, 0, 1, 1]
    run.report(first, {"loss": 1.0, "batches": 10})
    run.exit_early(second, ExitedReason.ERRORED)
    assert owners(run) == [0, 0, 1, 1, 0]


def test_progress_is_the_mean_of_the_brackets() -> None:
    run = adaptive_run()
    run.report(run.numbered(1), {"loss": 1.0, "batches": 10})
    assert run.searcher.progress() == (1 / (1.2 * 6) + 0) / 2


def test_shape_of_the_state() -> None:
    state = adaptive_run().searcher.snapshot()["search_method_state"]
    assert state.keys() == {"trial_table", "sub_search_states", "search_method_type"}
    assert state["search_method_type"] == "adaptive_asha"
    assert [sub["search_method_type"] for sub in state["sub_search_states"]] == ["asha", "asha"]
    assert [[rung["units_needed"] for rung in sub["rungs"]] for sub in state["sub_search_states"]] == [
        [10, 30, 90],
        [30, 90],
    ]
