"""What holds for every search, whatever its trials do."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from libs.searchers.actions import Action
from libs.searchers.config import parse_searcher
from libs.searchers.events import ExitedReason
from libs.searchers.methods.adaptive_asha import AdaptiveAshaConfig
from libs.searchers.methods.async_halving import AsyncHalvingConfig
from libs.searchers.methods.brackets import plan_brackets
from libs.searchers.searcher import Searcher
from tests.unit.libs.searchers.simulation import Run

HPARAMS = {
    "lr": {"type": "log", "base": 10, "minval": -4, "maxval": 0, "count": 2},
    "net": {"depth": {"type": "int", "minval": 1, "maxval": 9, "count": 3}, "kind": "plain"},
}
GRID_POINTS = 6

counts = st.integers(1, 8)
concurrency = st.integers(0, 5)
halving = {
    "metric": st.just("loss"),
    "time_metric": st.just("batches"),
    "max_time": st.integers(1, 30),
    "max_trials": counts,
    "divisor": st.sampled_from([2, 2.5, 3, 4]),
    "smaller_is_better": st.booleans(),
    "max_concurrent_trials": concurrency,
}
full_searches = st.one_of(
    st.just({"name": "single"}),
    st.fixed_dictionaries({"name": st.just("random"), "max_trials": counts, "max_concurrent_trials": concurrency}),
    st.fixed_dictionaries({"name": st.just("grid"), "max_concurrent_trials": concurrency}),
)
halving_searches = st.one_of(
    st.fixed_dictionaries({"name": st.just("async_halving"), "num_rungs": st.integers(1, 4), **halving}),
    st.fixed_dictionaries(
        {
            "name": st.just("adaptive_asha"),
            "mode": st.sampled_from(["aggressive", "standard", "conservative"]),
            **halving,
        }
    ),
)
sections = full_searches | halving_searches
seeds = st.integers(0, 2**32 - 1)
metrics = st.one_of(st.floats(-10, 10), st.sampled_from(["NaN", "Infinity", "-Infinity", None]))


class Event(Struct, frozen=True):
    """Something that happens to one of the trials created so far, stopped and closed ones included."""

    trial: int
    kind: str
    steps: int
    metric: Any


KINDS = ["report", "report", "report", "progress", "exit", *ExitedReason]
events = st.lists(
    st.builds(Event, trial=st.integers(0, 50), kind=st.sampled_from(KINDS), steps=st.integers(0, 9), metric=metrics),
    max_size=30,
)


def happen(run: Run, event: Event) -> list[Action]:
    trial = run.numbered(event.trial % len(run.trials) + 1)
    if event.kind == "report":
        trial.time += event.steps
        return run.report(trial, {"loss": event.metric, "batches": trial.time})
    if event.kind == "progress":
        run.searcher.set_trial_progress(trial.create.request_id, event.steps / 9)
        return []
    if event.kind == "exit":
        return run.exit(trial)
    return run.exit_early(trial, ExitedReason(event.kind))


def play(run: Run, story: list[Event]) -> None:
    run.start()
    for event in story:
        happen(run, event)


def finish(run: Run) -> None:
    while run.running:
        run.exit(next(iter(run.running.values())))


def most_trials(section: dict[str, Any]) -> int:
    config = parse_searcher(section).config
    if isinstance(config, AsyncHalvingConfig | AdaptiveAshaConfig):
        return sum(bracket.max_trials for bracket in plan_brackets(config))
    full: dict[str, int] = {"single": 1, "grid": GRID_POINTS, "random": section.get("max_trials", 0)}
    return full[section["name"]]


@settings(max_examples=150, deadline=None)
@given(section=sections, seed=seeds, story=events)
def test_a_snapshot_at_any_point_continues_with_the_same_actions(
    section: dict[str, Any], seed: int, story: list[Event]
) -> None:
    steady, restored = (Run(Searcher.create(section, HPARAMS, seed)) for _ in range(2))
    assert restored.start() == steady.start()
    for event in story:
        snapshot = json.loads(json.dumps(restored.searcher.snapshot(), allow_nan=False))
        restored.searcher = Searcher.restore(section, HPARAMS, snapshot)
        assert happen(restored, event) == happen(steady, event)
    assert restored.searcher.snapshot() == steady.searcher.snapshot()
    assert restored.searcher.progress() == steady.searcher.progress()


@settings(max_examples=150, deadline=None)
@given(section=sections, seed=seeds, story=events)
def test_every_search_ends_with_one_shutdown_when_all_its_trials_are_over(
    section: dict[str, Any], seed: int, story: list[Event]
) -> None:
    run = Run(Searcher.create(section, HPARAMS, seed))
    play(run, story)
    assert bool(run.shutdowns) == (not run.running)
    finish(run)
    assert len(run.shutdowns) == 1
    assert 0 <= run.searcher.progress() <= 1


@settings(max_examples=150, deadline=None)
@given(section=sections, seed=seeds, story=events)
def test_no_search_creates_more_valid_trials_than_asked_for(
    section: dict[str, Any], seed: int, story: list[Event]
) -> None:
    run = Run(Searcher.create(section, HPARAMS, seed))
    play(run, story)
    finish(run)
    assert len(run.searcher.snapshot()["trial_progress"]) <= most_trials(section)


@settings(max_examples=30, deadline=None)
@given(section=sections, seed=seeds, story=events)
def test_the_seed_decides_everything_but_the_events(section: dict[str, Any], seed: int, story: list[Event]) -> None:
    runs = [
        Run(Searcher.create(section, dict(reversed(HPARAMS.items())), seed)),
        Run(Searcher.create(section, HPARAMS, seed)),
    ]
    for run in runs:
        play(run, story)
    assert runs[0].searcher.snapshot() == runs[1].searcher.snapshot()
    assert list(runs[0].trials) == list(runs[1].trials)


@settings(max_examples=150, deadline=None)
@given(section=full_searches, seed=seeds, story=events)
def test_progress_of_random_and_grid_never_goes_back(section: dict[str, Any], seed: int, story: list[Event]) -> None:
    run = Run(Searcher.create(section, HPARAMS, seed))
    run.start()
    last = run.searcher.progress()
    for event in story:
        if event.kind in (ExitedReason.INVALID_HP, ExitedReason.INIT_INVALID_HP):
            continue  # what an invalid trial did is taken back, and done again by its replacement
        happen(run, event)
        assert last <= run.searcher.progress() <= 1
        last = run.searcher.progress()
    finish(run)
    assert run.searcher.progress() == 1


@settings(max_examples=150, deadline=None)
@given(section=halving_searches, seed=seeds, story=events)
def test_events_that_come_twice_change_nothing(section: dict[str, Any], seed: int, story: list[Event]) -> None:
    run = Run(Searcher.create(section, HPARAMS, seed))
    run.start()
    for event in story:
        trial = run.numbered(event.trial % len(run.trials) + 1)
        happen(run, event)
        before = run.searcher.snapshot()
        number = trial.number - 1
        assert happen(run, Event(number, event.kind, 0, event.metric)) == []
        assert run.searcher.snapshot() == before


@settings(max_examples=150, deadline=None)
@given(section=sections, seed=seeds, story=events)
def test_never_more_trials_at_work_than_at_the_start(section: dict[str, Any], seed: int, story: list[Event]) -> None:
    run = Run(Searcher.create(section, HPARAMS, seed))
    initial = len(run.start())
    for event in story:
        happen(run, event)
        exits = run.searcher.snapshot()["exits"]
        at_work = [trial for name, trial in run.running.items() if not trial.stopped and name not in exits]
        assert len(at_work) <= initial
