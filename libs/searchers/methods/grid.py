"""grid: every point of a grid once, the last point first (docs/reference/experiments.md 3.3)."""

from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, Self

import msgspec
from msgspec import Struct

from libs.searchers.events import ExitedReason
from libs.searchers.methods.definition import (
    DEFAULT_CONCURRENT_TRIALS,
    Concurrency,
    MethodDefinition,
    PreviewTrial,
)
from libs.searchers.methods.grid_axes import count_points, grid_points
from libs.searchers.methods.method import MethodAction, finished_share
from libs.searchers.sampling.space import SearchSpace, parse_space
from libs.searchers.sampling.trial_source import TrialSource
from libs.shapes.shape import whole


class GridConfig(Struct, frozen=True, kw_only=True, tag_field="name", tag="grid"):
    """Every point of a grid, each trained to completion."""

    max_concurrent_trials: Concurrency = DEFAULT_CONCURRENT_TRIALS


class GridState(Struct):
    """``remaining_trials`` are the hyperparameters of points not created yet; the next one is at the end."""

    remaining_trials: list[dict[str, Any]]
    pending_trials: int = 0
    search_method_type: Literal["grid"] = "grid"


class GridSearch:
    """Keeps up to ``max_concurrent`` trials going until no point is left; points are never tried twice."""

    def __init__(self, *, max_concurrent: int, trials: TrialSource, state: GridState) -> None:
        self._max_concurrent = max_concurrent
        self._total = count_points(trials.space)
        self._trials = trials
        self._state = state

    @classmethod
    def build(cls, config: GridConfig, trials: TrialSource, snapshot: Mapping[str, Any] | None = None) -> Self:
        """Begin a search, or continue the one that ``snapshot`` describes."""
        state = GridState(grid_points(trials.space)) if snapshot is None else msgspec.convert(snapshot, GridState)
        return cls(max_concurrent=config.max_concurrent_trials, trials=trials, state=state)

    def initial_trials(self) -> list[MethodAction]:
        points = len(self._state.remaining_trials)
        return [self._create() for _ in range(min(points, self._max_concurrent or points))]

    def validation_completed(self, request_id: str, metrics: Mapping[str, Any]) -> list[MethodAction]:
        return []

    def trial_exited_early(self, request_id: str, reason: ExitedReason) -> list[MethodAction]:
        return []

    def trial_exited(self, request_id: str) -> list[MethodAction]:
        self._state.pending_trials -= 1
        return [self._create()] if self._state.remaining_trials else []

    def missing_metrics(self, metrics: Mapping[str, Any]) -> tuple[str, ...]:
        return ()

    def progress(self, trial_progress: Mapping[str, float], closed: Collection[str]) -> float:
        return finished_share(trial_progress, closed, self._total)

    def snapshot(self) -> dict[str, Any]:
        return {**msgspec.structs.asdict(self._state), "remaining_trials": list(self._state.remaining_trials)}

    def _create(self) -> MethodAction:
        self._state.pending_trials += 1
        return self._trials.with_hparams(self._state.remaining_trials.pop())


def build(config: GridConfig, trials: TrialSource, snapshot: Mapping[str, Any] | None) -> GridSearch:
    return GridSearch.build(config, trials, snapshot)


def count_at_once(config: GridConfig, hyperparameters: Mapping[str, Any]) -> int:
    return count_points(parse_space(hyperparameters))


def preview(config: GridConfig, hyperparameters: Mapping[str, Any]) -> list[PreviewTrial]:
    return [PreviewTrial(count_points(parse_space(hyperparameters)), max_length=True)]


def most_refusals(config: GridConfig, space: SearchSpace) -> int:
    """A grid replaces no trial, so that it is all of its points."""
    return count_points(space)


DEFINITION: Final = MethodDefinition[GridConfig](
    name="grid",
    config=GridConfig,
    fields={"max_concurrent_trials": whole(0)},
    defaults={"max_concurrent_trials": DEFAULT_CONCURRENT_TRIALS},
    build=build,
    count_at_once=count_at_once,
    preview=preview,
    most_refusals=most_refusals,
)
