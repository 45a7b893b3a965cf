"""The searcher section of a stored experiment configuration, decoded (docs/reference/experiments.md 1.5).

Fields that no search method looks at (source_trial_id, stop_once, ...) are ignored, unset ones may be null or absent.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from libs.searchers.errors import InvalidSearcher

Positive = Annotated[int, Meta(ge=1)]
Concurrency = Annotated[int, Meta(ge=0)]
"""Most trials that run at once; 0 leaves it to the search method."""
Divisor = Annotated[float, Meta(gt=1)]
"""One in ``divisor`` trials goes on from a rung to the next."""


class Mode(StrEnum):
    """How adaptive_asha spreads its trials: aggressive stops early, conservative hedges with gentler brackets."""

    AGGRESSIVE = "aggressive"
    STANDARD = "standard"
    CONSERVATIVE = "conservative"


class SingleConfig(Struct, frozen=True, kw_only=True, tag_field="name", tag="single"):
    """One trial."""


class RandomConfig(Struct, frozen=True, kw_only=True, tag_field="name", tag="random"):
    """Trials drawn at random, each trained to completion."""

    max_trials: Positive
    max_concurrent_trials: Concurrency = 16


class GridConfig(Struct, frozen=True, kw_only=True, tag_field="name", tag="grid"):
    """Every point of a grid, each trained to completion."""

    max_concurrent_trials: Concurrency = 16


class HalvingConfig(Struct, frozen=True, kw_only=True):
    """What both kinds of ASHA share; times are in units of ``time_metric``."""

    metric: str
    max_time: Positive
    time_metric: str
    max_trials: Positive
    smaller_is_better: bool = True
    divisor: Divisor = 4.0
    max_concurrent_trials: Concurrency = 16


class AsyncHalvingConfig(HalvingConfig, frozen=True, kw_only=True, tag_field="name", tag="async_halving"):
    """ASHA with a single bracket."""

    num_rungs: Positive


class AdaptiveAshaConfig(HalvingConfig, frozen=True, kw_only=True, tag_field="name", tag="adaptive_asha"):
    """Several ASHA brackets side by side; ``bracket_rungs`` names their depths instead of ``mode``."""

    mode: Mode = Mode.STANDARD
    max_rungs: Positive = 5
    bracket_rungs: tuple[Positive, ...] = ()


SearcherConfig = SingleConfig | RandomConfig | GridConfig | AsyncHalvingConfig | AdaptiveAshaConfig
_HALVING = ("async_halving", "adaptive_asha")
_NAMES = ("single", "random", "grid", *_HALVING)


def parse_searcher(section: Mapping[str, Any]) -> SearcherConfig:
    """Decode a ``searcher`` section after defaults; raises InvalidSearcher, also for searchers that were removed."""
    name = section.get("name")
    if name not in _NAMES:
        raise InvalidSearcher("invalid searcher configuration")
    given = {key: value for key, value in section.items() if value is not None}
    if name in _HALVING:
        given = _legacy_length(given) | given
        if "max_time" not in given or "time_metric" not in given:
            raise InvalidSearcher(f"the `{name}` searcher requires `max_time` and `time_metric` to be set")
    try:
        config: SearcherConfig = msgspec.convert(given, SearcherConfig)
    except msgspec.ValidationError as error:
        raise InvalidSearcher(f"invalid searcher configuration: {error}") from error
    return config


def _legacy_length(section: Mapping[str, Any]) -> dict[str, Any]:
    """Old configurations say ``max_length: {batches: 100}``, or a bare number of batches, instead of ``max_time``."""
    match section.get("max_length"):
        case bool() | None:
            return {}
        case int(batches):
            return {"max_time": batches, "time_metric": "batches"}
        case {**length} if len(length) == 1:
            ((unit, units),) = length.items()
            return {"max_time": units, "time_metric": unit}
        case _:
            return {}
