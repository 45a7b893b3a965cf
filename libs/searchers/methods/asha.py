"""ASHA with early stopping: a trial runs on while it is among the best that reached its rung, else it is stopped.

Decisions are made once, with what has been reported so far, and never revised. A whole async_halving search, or one
bracket of adaptive_asha. Source: docs/reference/experiments.md 3.4.
"""

import math
import sys
from bisect import bisect_left
from collections.abc import Collection, Mapping
from operator import attrgetter
from typing import Any, Literal, Self

import msgspec
from msgspec import Struct

from libs.searchers.actions import Stop
from libs.searchers.events import ExitedReason
from libs.searchers.methods.brackets import Bracket, initial_count, survivors
from libs.searchers.methods.method import MethodAction
from libs.searchers.reports import (
    SPELLED_FLOATS,
    Goal,
    Report,
    SpelledInfinity,
    missing_metrics,
    parse_report,
    spell_infinity,
)
from libs.searchers.sampling.trial_source import TrialSource

_OVERHEAD = 1.2
"""Progress by reports ends at 1 / 1.2: the rest is for the trials that still run when the last one has reported."""


class RungMetric(Struct, frozen=True):
    """What a trial reported at a rung; smaller is better."""

    request_id: str
    metric: float | SpelledInfinity

    @property
    def value(self) -> float:
        return SPELLED_FLOATS[self.metric] if isinstance(self.metric, str) else self.metric


class Rung(Struct):
    """``metrics`` is sorted, the best trial first."""

    units_needed: int
    metrics: list[RungMetric]

    def insert(self, request_id: str, value: float) -> int:
        """Add a report and return its place, 0 for the best; before equal ones, but last if infinitely bad.

        Trials that diverge must not pass a rung only because all others diverged as well.
        """
        place = bisect_left(self.metrics, value, key=attrgetter("value")) if value < math.inf else len(self.metrics)
        self.metrics.insert(place, RungMetric(request_id, spell_infinity(value)))
        return place

    def remove(self, request_id: str) -> None:
        self.metrics = [entry for entry in self.metrics if entry.request_id != request_id]


class AshaState(Struct):
    """``trial_rungs`` has the rung that each trial works towards, or at which it was stopped."""

    rungs: list[Rung]
    trial_rungs: dict[str, int]
    early_exit_trials: dict[str, bool]
    trials_completed: int = 0
    invalid_trials: int = 0
    search_method_type: Literal["asha"] = "asha"


class AshaSearch:
    """One bracket."""

    def __init__(self, *, bracket: Bracket, goal: Goal, trials: TrialSource, state: AshaState) -> None:
        self._bracket = bracket
        self._goal = goal
        self._trials = trials
        self._state = state
        # To look for a trial among the reports themselves would cost more with each of them.
        self._reported = [{entry.request_id for entry in rung.metrics} for rung in state.rungs]

    @classmethod
    def build(
        cls, bracket: Bracket, goal: Goal, trials: TrialSource, snapshot: Mapping[str, Any] | None = None
    ) -> Self:
        """Begin a search, or continue the one that ``snapshot`` describes."""
        if snapshot is None:
            state = AshaState([Rung(units, []) for units in bracket.rung_units], {}, {})
        else:
            state = msgspec.convert(snapshot, AshaState)
        return cls(bracket=bracket, goal=goal, trials=trials, state=state)

    def initial_trials(self) -> list[MethodAction]:
        return [self._create() for _ in range(initial_count(self._bracket))]

    def validation_completed(self, request_id: str, metrics: Mapping[str, Any]) -> list[MethodAction]:
        report = parse_report(metrics, self._goal)
        # A stopped trial may report on until it hears of it: it must not be judged twice.
        if report is None or self._is_out(request_id) or not self._falls_behind(request_id, report):
            return []
        return [Stop(request_id), *self._replacement()]

    def trial_exited_early(self, request_id: str, reason: ExitedReason) -> list[MethodAction]:
        if self._is_out(request_id):
            return []  # stopped before, and replaced then
        self._state.early_exit_trials[request_id] = True
        if reason.is_invalid_hp:
            self._state.invalid_trials += 1
            for rung, reported in zip(self._state.rungs, self._reported, strict=True):
                if request_id in reported:
                    rung.remove(request_id)
                    reported.remove(request_id)
            return [Stop(request_id), *self._replacement()]
        self._insert(request_id, sys.float_info.max)
        return self._replacement()

    def trial_exited(self, request_id: str) -> list[MethodAction]:
        # No replacement: a trial that ends by itself has used its share of the search.
        self._state.trials_completed += 1
        return []

    def missing_metrics(self, metrics: Mapping[str, Any]) -> tuple[str, ...]:
        return missing_metrics(metrics, self._goal)

    def progress(self, trial_progress: Mapping[str, float], closed: Collection[str]) -> float:
        max_trials = self._bracket.max_trials
        by_reports = len(self._state.rungs[0].metrics) / (_OVERHEAD * max_trials)
        if self._valid_trials() < max_trials:
            return by_reports
        return max(by_reports, (self._state.trials_completed - self._state.invalid_trials) / max_trials)

    def snapshot(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self._state)
        return plain

    def _falls_behind(self, request_id: str, report: Report) -> bool:
        """Take the trial past every rung that its time has reached; True when it is to be stopped at one of them."""
        while report.time >= (rung := self._rung_of(request_id)).units_needed:
            place = self._insert(request_id, report.value)
            if rung is self._state.rungs[-1] or place >= survivors(len(rung.metrics), self._bracket.divisor):
                return True
            self._state.trial_rungs[request_id] += 1
        return False

    def _is_out(self, request_id: str) -> bool:
        """Whether the trial was stopped or exited early; one that goes on has no report at its own rung yet."""
        return request_id in self._state.early_exit_trials or self._has_reported(request_id)

    def _has_reported(self, request_id: str) -> bool:
        """At the rung that it works towards."""
        return request_id in self._reported[self._state.trial_rungs[request_id]]

    def _insert(self, request_id: str, value: float) -> int:
        """Note a report at the rung that the trial works towards; its place there, 0 for the best."""
        self._reported[self._state.trial_rungs[request_id]].add(request_id)
        return self._rung_of(request_id).insert(request_id, value)

    def _rung_of(self, request_id: str) -> Rung:
        return self._state.rungs[self._state.trial_rungs[request_id]]

    def _valid_trials(self) -> int:
        return len(self._state.trial_rungs) - self._state.invalid_trials

    def _replacement(self) -> list[MethodAction]:
        return [self._create()] if self._valid_trials() < self._bracket.max_trials else []

    def _create(self) -> MethodAction:
        create = self._trials.sampled()
        self._state.trial_rungs[create.request_id] = 0
        return create
