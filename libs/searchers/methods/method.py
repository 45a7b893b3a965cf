"""Protocol of a search method; the bookkeeping around it, the same for all, is in ``searcher.py``."""

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from libs.searchers.actions import Create, Stop
from libs.searchers.events import ExitedReason

MethodAction = Create | Stop


class SearchMethod(Protocol):
    """Decides about trials. Told nothing about a trial once its early exit or its exit was handled."""

    def initial_trials(self) -> list[MethodAction]:
        """The trials to begin with; asked once."""

    def validation_completed(self, request_id: str, metrics: Mapping[str, Any]) -> list[MethodAction]:
        """A trial validated; its report may lack what ``missing_metrics`` would name, and then nothing happens."""

    def trial_exited_early(self, request_id: str, reason: ExitedReason) -> list[MethodAction]:
        """A trial will not do what it was created for; ``trial_exited`` follows."""

    def trial_exited(self, request_id: str) -> list[MethodAction]:
        """A trial is over, however it ended."""

    def missing_metrics(self, metrics: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of the metrics that this method needs and this report does not give."""

    def progress(self, trial_progress: Mapping[str, float], closed: Collection[str]) -> float:
        """How far the search is, 0..1.

        trial_progress  request id -> 0..1, of every trial except those with invalid hyperparameters
        closed          request ids of the trials that are over
        """

    def snapshot(self) -> dict[str, Any]:
        """The method's own state, as JSON can carry it."""


def finished_share(trial_progress: Mapping[str, float], closed: Collection[str], total: int) -> float:
    """Mean progress over all ``total`` trials of a search, created or not; a trial that is over counts as done.

    Dividing by what was created so far would fall with every new trial. Source: docs/reference/experiments.md 3.2 and
    15 (5).
    """
    done = sum(1.0 if request_id in closed else progress for request_id, progress in trial_progress.items())
    return done / total
