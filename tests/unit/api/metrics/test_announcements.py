"""How often the world hears of metrics."""

from __future__ import annotations

from libs.events.changes import ExperimentChanged, TrialChanged
from services.api.metrics.announcements import Announcements


def of_training(trial: int, step: int = 0) -> TrialChanged:
    return TrialChanged(trial_id=trial, experiment_id=1, what="metrics", group="training", steps_completed=step)


VALIDATION = TrialChanged(trial_id=1, experiment_id=1, what="metrics", group="validation", metrics={"loss": 1})


def test_the_first_goes_out_and_the_newest_of_the_others_when_it_is_due() -> None:
    announcements = Announcements(1.0)
    assert announcements.due_in_s(0) is None
    assert announcements.admit([of_training(1, 1)], 0.0) == [of_training(1, 1)]
    assert announcements.admit([of_training(1, 2)], 0.25) == []
    assert announcements.admit([of_training(1, 3)], 0.5) == []
    assert announcements.due_in_s(0.5) == 0.5
    assert announcements.take_due(0.9) == []
    assert announcements.take_due(1.0) == [of_training(1, 3)]
    assert announcements.due_in_s(1.0) is None


def test_trials_do_not_wait_for_one_another() -> None:
    announcements = Announcements(1.0)
    announcements.admit([of_training(1)], 0.0)
    assert announcements.admit([of_training(1), of_training(2)], 0.1) == [of_training(2)]


def test_validations_and_what_searches_wait_for_are_never_held_back() -> None:
    announcements = Announcements(1.0)
    news = [VALIDATION, ExperimentChanged(experiment_id=1, what="searcher")]
    announcements.admit([of_training(1)], 0.0)
    announcements.admit([of_training(1)], 0.1)
    assert announcements.admit(news, 0.2) == news
    assert announcements.admit(news, 0.3) == news
    assert announcements.due_in_s(0.3) is None  # the validation said what the held one would have
