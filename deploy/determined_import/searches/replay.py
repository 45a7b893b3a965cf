"""A search that is told again, in the order of time, what the old server told it. Pure.

The old server keeps what its searches know in a form of its own. But a search is determined by its configuration, its
seed and what it hears of its trials (docs/reference/experiments.md 3 and 4), and all of that is imported: so it is
begun anew, and hears everything once more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from libs.errors import InvalidRequest
from libs.searchers.actions import Action, Create, Shutdown, Stop
from libs.searchers.events import ExitedReason
from libs.searchers.searcher import Searcher


class PastTrial(Struct, frozen=True, kw_only=True):
    """``ended`` is when, if it has; ``state`` is terminal then."""

    request_id: str
    state: str
    ended: datetime | None


class PastValidation(Struct, frozen=True, kw_only=True):
    """A validation report that counts, with all its metrics."""

    request_id: str
    at: datetime
    metrics: Mapping[str, Any]


class Replayed(Struct, frozen=True, kw_only=True):
    """What the search knows now, and what it still asks for.

    creates   trials that it wants and that the old server had not created yet
    stops     request ids of trials that it does not want any more and that have not ended
    shutdown  set when nothing is left to do
    """

    snapshot: dict[str, Any]
    creates: tuple[Create, ...]
    stops: tuple[str, ...]
    shutdown: Shutdown | None


class NotReplayable(Exception):
    """The search of this configuration does not lead to the trials that there are; the message says why."""


_EXITED_EARLY = {"ERROR": ExitedReason.ERRORED, "CANCELED": ExitedReason.USER_CANCELED}


def replay(config: Mapping[str, Any], trials: Sequence[PastTrial], validations: Iterable[PastValidation]) -> Replayed:
    """Begin the search of a complete configuration, and tell it what became of its trials. Raises NotReplayable."""
    try:
        searcher = Searcher.create(
            _part(config, "searcher"),
            _member(config, "hyperparameters"),
            _member(_part(config, "reproducibility"), "reproducibility.experiment_seed"),
        )
        return _Replay(searcher, trials).run(validations)
    except InvalidRequest as error:
        raise NotReplayable(str(error)) from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        # Configurations of many releases come by here; whatever a searcher makes of one is a matter of this experiment.
        raise NotReplayable(f"its configuration cannot be searched with ({type(error).__name__}: {error})") from error


def _part(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = _member(config, name)
    if not isinstance(found, Mapping):
        raise NotReplayable(f"{name} of its configuration is no object")
    return found


def _member(part: Mapping[str, Any], path: str) -> Any:
    """The last name of ``path`` in the part that has it."""
    name = path.rpartition(".")[2]
    if part.get(name) is None:
        raise NotReplayable(f"its configuration has no {path}")
    return part[name]


class _Replay:
    def __init__(self, searcher: Searcher, trials: Sequence[PastTrial]) -> None:
        self._searcher = searcher
        self._trials = {trial.request_id: trial for trial in trials}
        self._created: set[str] = set()
        self._missing: list[Create] = []
        self._stops: list[str] = []
        self._shutdown: Shutdown | None = None

    def run(self, validations: Iterable[PastValidation]) -> Replayed:
        self._carry_out(self._searcher.initial_trials())
        if self._trials and not self._created:
            raise NotReplayable("it begins with other trials than those that there are")
        for event in self._in_order(validations):
            self._tell(event)
        if unknown := self._trials.keys() - self._created:
            raise NotReplayable(f"it never asks for {len(unknown)} of its trials")
        return Replayed(
            snapshot=self._searcher.snapshot(),
            creates=tuple(self._missing),
            stops=tuple(stop for stop in self._stops if (trial := self._trials.get(stop)) and trial.ended is None),
            shutdown=self._shutdown,
        )

    def _in_order(self, validations: Iterable[PastValidation]) -> list[PastValidation | PastTrial]:
        """What a trial has validated comes before its end: the old server stores a report after its search has heard of
        it, and so perhaps after the end that followed from it."""
        ends = [(trial.ended, 1, trial.ended, trial) for trial in self._trials.values() if trial.ended is not None]
        known = [
            (min(each.at, self._trials[each.request_id].ended or each.at), 0, each.at, each)
            for each in validations
            if each.request_id in self._trials
        ]
        timed: list[tuple[datetime, int, datetime, PastValidation | PastTrial]] = [*ends, *known]
        return [event for *_, event in sorted(timed, key=lambda each: each[:3])]

    def _tell(self, event: PastValidation | PastTrial) -> None:
        if event.request_id not in self._created:
            raise NotReplayable("a trial reported before the search asked for it")
        match event:
            case PastValidation(request_id=trial, metrics=metrics):
                self._carry_out(self._searcher.validation_completed(trial, metrics))
            case PastTrial(request_id=trial, state=state):
                if state in _EXITED_EARLY:
                    self._carry_out(self._searcher.trial_exited_early(trial, _EXITED_EARLY[state]))
                self._carry_out(self._searcher.trial_exited(trial))

    def _carry_out(self, actions: Iterable[Action]) -> None:
        todo = deque(actions)
        while todo:
            match todo.popleft():
                case Create(request_id=request_id) as create:
                    if request_id in self._trials:
                        self._created.add(request_id)
                    else:
                        self._missing.append(create)
                    todo.extend(self._searcher.trial_created(request_id))
                case Stop(request_id=request_id):
                    self._stops.append(request_id)
                case Shutdown() as shutdown:
                    self._shutdown = shutdown
