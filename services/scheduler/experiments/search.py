"""Search under way: its searcher, the events that it has to be told, and the actions that it asks for. Pure.

The engine tells, carries out what is asked for, and tells again, until nothing is asked for any more; then it stores
the snapshot, in the transaction of everything else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import structlog

from libs.config.stored import part
from libs.searchers.actions import Action
from libs.searchers.errors import UnknownTrialError
from libs.searchers.events import ExitedReason
from libs.searchers.searcher import Searcher
from libs.states.trial import TrialState

log = structlog.get_logger()

_EXITED_EARLY = {TrialState.ERROR: ExitedReason.ERRORED, TrialState.CANCELED: ExitedReason.USER_CANCELED}


class SearchFailedError(Exception):
    """The search cannot go on, now or ever; the message is for the owner of the experiment."""


class Search:
    """Wraps every call to the searcher, so that whatever is wrong with it ends the experiment and not the scheduler."""

    def __init__(self, searcher: Searcher, *, is_new: bool) -> None:
        self._searcher = searcher
        self.todo: deque[Action] = deque()
        self.heard = is_new
        """Whether the snapshot has to be stored again."""

    @classmethod
    def open(cls, config: Mapping[str, Any], snapshot: Mapping[str, Any] | None) -> Search:
        """Continue from ``snapshot``, or begin. Raises SearchFailedError."""
        with _failing():
            section, space = part(config, "searcher"), part(config, "hyperparameters")
            if snapshot is not None:
                return cls(Searcher.restore(section, space, snapshot), is_new=False)
            seed = part(config, "reproducibility").get("experiment_seed")
            if not isinstance(seed, int):  # another one would be another search
                raise SearchFailedError("the configuration has no reproducibility.experiment_seed")
            search = cls(Searcher.create(section, space, seed), is_new=True)
            search.todo.extend(search._searcher.initial_trials())
            return search

    def created(self, request_id: str) -> None:
        with self._hearing():
            self.todo.extend(self._searcher.trial_created(request_id))

    def validated(self, request_id: str, metrics: Mapping[str, Any]) -> tuple[str, ...]:
        """Returns the names of metrics that it needs and the report lacks."""
        with self._hearing():
            self.todo.extend(self._searcher.validation_completed(request_id, metrics))
        with _failing():
            return self._searcher.missing_metrics(metrics)

    def progressed(self, request_id: str, progress: float) -> None:
        with self._hearing():
            self._searcher.set_trial_progress(request_id, progress)

    def exits_early(self, request_id: str, reason: str) -> str:
        """Returns why this is no longer worth a replacement; "" while it is."""
        with self._hearing():
            self.todo.extend(self._searcher.trial_exited_early(request_id, ExitedReason(reason)))
        return self._searcher.refused

    def ended(self, request_id: str, state: TrialState) -> None:
        """A trial is over, in the terminal ``state``."""
        with self._hearing():
            if state in _EXITED_EARLY:
                self.todo.extend(self._searcher.trial_exited_early(request_id, _EXITED_EARLY[state]))
            self.todo.extend(self._searcher.trial_exited(request_id))

    def progress(self) -> float:
        with _failing():
            return min(max(self._searcher.progress(), 0.0), 1.0)

    def snapshot(self) -> dict[str, Any]:
        with _failing():
            return self._searcher.snapshot()

    @contextmanager
    def _hearing(self) -> Iterator[None]:
        self.heard = True
        with _failing():
            yield


@contextmanager
def _failing() -> Iterator[None]:
    try:
        yield
    except UnknownTrialError as error:
        # A search that began again, as after continue, may hear late of a trial that it has yet to create.
        log.warning("search.unknown_trial", error=str(error))
    except SearchFailedError:
        raise
    except Exception as error:
        # Searchers compute: whatever they raise they will raise again, so trying again is no way out.
        raise SearchFailedError(f"{type(error).__name__}: {error}") from error
