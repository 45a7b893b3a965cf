"""random: trials drawn from the space, each trained to completion.

Source: docs/reference/experiments.md 3.2.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, Self

import msgspec
from msgspec import Struct

from libs.searchers.events import ExitedReason
from libs.searchers.methods.definition import (
    DEFAULT_CONCURRENT_TRIALS,
    Concurrency,
    MethodDefinition,
    Positive,
    PreviewTrial,
)
from libs.searchers.methods.method import MethodAction, finished_share
from libs.searchers.sampling.space import SearchSpace
from libs.searchers.sampling.trial_source import TrialSource
from libs.shapes.shape import whole


class RandomConfig(Struct, frozen=True, kw_only=True, tag_field="name", tag="random"):
    """Trials drawn at random, each trained to completion."""

    max_trials: Positive
    max_concurrent_trials: Concurrency = DEFAULT_CONCURRENT_TRIALS


class RandomState(Struct):
    """``created_trials`` leaves out trials that have to be replaced; ``pending_trials`` are created and not over."""

    search_method_type: Literal["random", "single"]
    created_trials: int = 0
    pending_trials: int = 0


class RandomSearch:
    """Keeps up to ``max_concurrent`` trials going until ``max_trials`` were created."""

    def __init__(self, *, max_trials: int, max_concurrent: int, trials: TrialSource, state: RandomState) -> None:
        self._max_trials = max_trials
        self._max_concurrent = max_concurrent
        self._trials = trials
        self._state = state

    @classmethod
    def build(
        cls,
        *,
        max_trials: int,
        max_concurrent: int,
        fresh: RandomState,
        trials: TrialSource,
        snapshot: Mapping[str, Any] | None,
    ) -> Self:
        """Begin a search with the ``fresh`` state, or continue the one that ``snapshot`` describes."""
        state = fresh if snapshot is None else msgspec.convert(snapshot, RandomState)
        return cls(max_trials=max_trials, max_concurrent=max_concurrent, trials=trials, state=state)

    def initial_trials(self) -> list[MethodAction]:
        return [self._create() for _ in range(min(self._max_trials, self._max_concurrent or self._max_trials))]

    def validation_completed(self, request_id: str, metrics: Mapping[str, Any]) -> list[MethodAction]:
        return []

    def trial_exited_early(self, request_id: str, reason: ExitedReason) -> list[MethodAction]:
        # Its exit creates the replacement. A single trial is what the user asked for: another draw would not be it.
        if reason.is_invalid_hp and self._state.search_method_type == "random":
            self._state.created_trials -= 1
        return []

    def trial_exited(self, request_id: str) -> list[MethodAction]:
        self._state.pending_trials -= 1
        return [self._create()] if self._state.created_trials < self._max_trials else []

    def missing_metrics(self, metrics: Mapping[str, Any]) -> tuple[str, ...]:
        return ()

    def progress(self, trial_progress: Mapping[str, float], closed: Collection[str]) -> float:
        return finished_share(trial_progress, closed, self._max_trials)

    def snapshot(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self._state)

    def _create(self) -> MethodAction:
        self._state.created_trials += 1
        self._state.pending_trials += 1
        return self._trials.sampled()


def build(config: RandomConfig, trials: TrialSource, snapshot: Mapping[str, Any] | None) -> RandomSearch:
    return RandomSearch.build(
        max_trials=config.max_trials,
        max_concurrent=config.max_concurrent_trials,
        fresh=RandomState("random"),
        trials=trials,
        snapshot=snapshot,
    )


def count_at_once(config: RandomConfig, hyperparameters: Mapping[str, Any]) -> int:
    return min(config.max_trials, config.max_concurrent_trials or config.max_trials)


def preview(config: RandomConfig, hyperparameters: Mapping[str, Any]) -> list[PreviewTrial]:
    return [PreviewTrial(config.max_trials, max_length=True)]


def most_refusals(config: RandomConfig, space: SearchSpace) -> int:
    """As many as the search is to have trials at all may be replaced."""
    return config.max_trials + 1


DEFINITION: Final = MethodDefinition[RandomConfig](
    name="random",
    config=RandomConfig,
    fields={"max_trials": whole(1), "max_concurrent_trials": whole(0)},
    defaults={"max_concurrent_trials": DEFAULT_CONCURRENT_TRIALS},
    required=("max_trials",),
    build=build,
    count_at_once=count_at_once,
    preview=preview,
    most_refusals=most_refusals,
)
