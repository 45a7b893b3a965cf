"""single: one trial, trained to completion; no search (docs/reference/experiments.md 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from libs.searchers.methods.definition import MethodDefinition, PreviewTrial
from libs.searchers.methods.random_search import RandomSearch, RandomState
from libs.searchers.sampling.space import SearchSpace
from libs.searchers.sampling.trial_source import TrialSource


class SingleConfig(Struct, frozen=True, kw_only=True, tag_field="name", tag="single"):
    """One trial."""


def build(config: SingleConfig, trials: TrialSource, snapshot: Mapping[str, Any] | None) -> RandomSearch:
    return RandomSearch.build(
        max_trials=1, max_concurrent=1, fresh=RandomState("single"), trials=trials, snapshot=snapshot
    )


def count_at_once(config: SingleConfig, hyperparameters: Mapping[str, Any]) -> int:
    return 1


def preview(config: SingleConfig, hyperparameters: Mapping[str, Any]) -> list[PreviewTrial]:
    return [PreviewTrial(1, max_length=True)]


def most_refusals(config: SingleConfig, space: SearchSpace) -> None:
    """A single trial is no search: nothing of it is replaced."""


DEFINITION: Final = MethodDefinition[SingleConfig](
    name="single",
    config=SingleConfig,
    fields={},
    build=build,
    count_at_once=count_at_once,
    preview=preview,
    most_refusals=most_refusals,
)
