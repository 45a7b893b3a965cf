"""A search that is told again what happened knows what it knew."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from deploy.determined_import.searches.replay import NotReplayable, PastTrial, PastValidation, replay
from libs.searchers.actions import Action, Create, Stop
from libs.searchers.searcher import Searcher

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
SPACE = {"lr": {"type": "double", "minval": 0.0, "maxval": 1.0}}
RANDOM: dict[str, Any] = {"name": "random", "metric": "loss", "max_trials": 3, "max_concurrent_trials": 2}
HALVING: dict[str, Any] = {
    "name": "adaptive_asha",
    "metric": "loss",
    "time_metric": "batches",
    "max_time": 16,
    "max_trials": 4,
    "bracket_rungs": [2],
    "divisor": 4,
    "max_concurrent_trials": 4,
}


def config_of(searcher: dict[str, Any]) -> dict[str, Any]:
    return {"searcher": searcher, "hyperparameters": SPACE, "reproducibility": {"experiment_seed": 3}}


def live(searcher: dict[str, Any]) -> tuple[Searcher, list[str]]:
    """The search as it was at the old server, and the first trials."""
    search = Searcher.create(searcher, SPACE, 3)
    ids = [action.request_id for action in search.initial_trials() if isinstance(action, Create)]
    for ident in ids:
        search.trial_created(ident)
    return search, ids


def past(ident: str, state: str = "PAUSED", *, minute: int | None = None) -> PastTrial:
    return PastTrial(request_id=ident, state=state, ended=None if minute is None else NOON + timedelta(minutes=minute))


def test_a_search_knows_what_it_knew_and_asks_for_what_was_about_to_come() -> None:
    search, ids = live(RANDOM)
    (third,) = search.trial_exited(ids[0])
    assert isinstance(third, Create)
    search.trial_created(third.request_id)
    replayed = replay(config_of(RANDOM), [past(ids[0], "COMPLETED", minute=1), past(ids[1])], [])
    assert replayed.creates == (third,)
    assert replayed.shutdown is None
    assert replayed.snapshot == search.snapshot()


def test_validations_are_heard_in_the_order_of_time() -> None:
    search, ids = live(HALVING)
    heard, stopped = [], []
    for minute, (ident, loss) in enumerate(zip(ids, (0.1, 0.2, 0.3, 0.9), strict=True)):
        metrics = {"loss": loss, "batches": 4}
        heard.append(PastValidation(request_id=ident, at=NOON + timedelta(minutes=minute), metrics=metrics))
        stopped += [each.request_id for each in search.validation_completed(ident, metrics) if isinstance(each, Stop)]
    replayed = replay(config_of(HALVING), [past(ident) for ident in ids], reversed(heard))
    assert stopped
    assert replayed.stops == tuple(stopped)
    assert replayed.snapshot == search.snapshot()


def test_a_validation_that_was_stored_after_the_end_of_its_trial_comes_before_it() -> None:
    searcher = {**HALVING, "max_concurrent_trials": 2}
    search, ids = live(searcher)
    actions: list[Action] = []
    for ident, loss in zip(ids, (0.1, 0.9), strict=True):
        actions += search.validation_completed(ident, {"loss": loss, "batches": 4})
    actions += search.trial_exited(ids[1])
    created = [action.request_id for action in actions if isinstance(action, Create)]
    for ident in created:
        search.trial_created(ident)
    heard = [
        PastValidation(request_id=ident, at=NOON + timedelta(minutes=minute), metrics={"loss": loss, "batches": 4})
        for ident, loss, minute in ((ids[0], 0.1, 1), (ids[1], 0.9, 3))
    ]
    trials = [past(ids[0]), past(ids[1], "COMPLETED", minute=2), *(past(ident) for ident in created)]
    assert replay(config_of(searcher), trials, heard).snapshot == search.snapshot()


@pytest.mark.parametrize(
    ("part", "value", "why"),
    [
        ("searcher", None, "its configuration has no searcher"),
        ("searcher", "random", "searcher of its configuration is no object"),
        ("hyperparameters", None, "its configuration has no hyperparameters"),
        ("reproducibility", None, "its configuration has no reproducibility"),
        ("reproducibility", {}, "its configuration has no reproducibility.experiment_seed"),
    ],
)
def test_what_a_configuration_lacks_is_named(part: str, value: object, why: str) -> None:
    with pytest.raises(NotReplayable, match=why):
        replay({**config_of(RANDOM), part: value}, [], [])


@pytest.mark.parametrize(
    "space", ["text", ["a"], {"lr": {"type": "double", "minval": None, "maxval": {}}}, {"lr": {"type": 7}}]
)
def test_a_space_that_is_none_is_a_matter_of_its_experiment(space: object) -> None:
    with pytest.raises(NotReplayable):
        replay({**config_of(RANDOM), "hyperparameters": space}, [], [])


def test_a_search_whose_trials_are_all_over_is_over() -> None:
    search, ids = live({**RANDOM, "max_trials": 2})
    ended = [past(ident, "ERROR", minute=minute) for minute, ident in enumerate(ids)]
    replayed = replay(config_of({**RANDOM, "max_trials": 2}), ended, [])
    assert replayed.shutdown is not None
    assert replayed.shutdown.failure
    assert search.progress() == 0


def test_a_search_without_any_trial_yet_asks_for_its_first() -> None:
    _, ids = live(RANDOM)
    assert [create.request_id for create in replay(config_of(RANDOM), [], []).creates] == ids


@pytest.mark.parametrize(
    ("searcher", "trials", "why"),
    [
        (RANDOM, [past("another")], "begins with other trials"),
        ({"name": "bygone"}, [], "invalid searcher"),
        ({**RANDOM, "max_trials": "many"}, [], "invalid searcher"),
    ],
)
def test_a_search_that_cannot_be_told_again_says_why(
    searcher: dict[str, Any], trials: list[PastTrial], why: str
) -> None:
    with pytest.raises(NotReplayable, match=why):
        replay(config_of(searcher), trials, [])


def test_a_trial_that_the_search_never_asks_for_is_a_reason() -> None:
    _, ids = live(RANDOM)
    with pytest.raises(NotReplayable, match="never asks for 1"):
        replay(config_of(RANDOM), [*(past(ident) for ident in ids), past("another")], [])
