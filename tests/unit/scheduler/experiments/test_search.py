from __future__ import annotations

from typing import Any

import pytest

from libs.searchers.actions import Create, Shutdown
from libs.states.trial import TrialState
from services.scheduler.experiments.search import Search, SearchFailedError


def config(**searcher: Any) -> dict[str, Any]:
    return {
        "searcher": {"name": "random", "metric": "loss", "max_trials": 2, "max_concurrent_trials": 1, **searcher},
        "hyperparameters": {},
        "reproducibility": {"experiment_seed": 1},
    }


def next_create(search: Search) -> str:
    create = search.todo.popleft()
    assert isinstance(create, Create)
    search.created(create.request_id)
    return create.request_id


def test_search_goes_on_from_its_snapshot() -> None:
    search = Search.open(config(), None)
    first = next_create(search)
    restored = Search.open(config(), search.snapshot())
    assert not restored.todo
    assert not restored.heard
    restored.ended(first, TrialState.COMPLETED)
    second = next_create(restored)
    restored.ended(second, TrialState.ERROR)
    assert list(restored.todo) == [Shutdown()]
    assert restored.progress() == 1.0


def test_search_whose_trials_all_failed_has_failed() -> None:
    search = Search.open(config(max_trials=1), None)
    search.ended(next_create(search), TrialState.ERROR)
    assert list(search.todo) == [Shutdown(failure=True)]


def test_events_of_trials_that_it_has_yet_to_create_are_dropped() -> None:
    search = Search.open(config(), None)
    assert search.validated("nobody", {"loss": 1.0}) == ()
    search.ended("nobody", TrialState.COMPLETED)
    assert len(search.todo) == 1


@pytest.mark.parametrize("snapshot", [{}, {"rand": {"key": [], "pos": 0}}])
def test_snapshot_that_cannot_be_restored_fails_the_search_and_nothing_else(snapshot: dict[str, Any]) -> None:
    with pytest.raises(SearchFailedError):
        Search.open(config(), snapshot)


def test_unknown_searcher_fails_the_search() -> None:
    with pytest.raises(SearchFailedError, match="invalid searcher configuration"):
        Search.open(config(name="custom"), None)
