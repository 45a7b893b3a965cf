"""Search methods: the fields of each, which of them new experiments may use, and what they need.

Methods that no longer exist can still be read, since experiments that used them are still shown.
Source: docs/reference/experiments.md 1.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from libs.shapes.lengths import max_length
from libs.shapes.problems import InvalidConfig
from libs.shapes.shape import Fields, Object, converted, flag, list_of, number, one_of, text, union, whole

DEFAULT_DIVISOR: Final = 4
DEFAULT_CONCURRENT_TRIALS: Final = 16

_MODE: Final = one_of("aggressive", "standard", "conservative")
_ASHA_FIELDS: Final[Fields] = {
    "max_trials": whole(1),
    "max_time": whole(1),
    "time_metric": text,
    "divisor": number(above=1),
    "max_concurrent_trials": whole(0),
}
_COMMON: Final[Fields] = {
    "metric": text,
    "smaller_is_better": flag,
    "source_trial_id": whole(),
    "source_checkpoint_uuid": text,
    "max_length": max_length,
}
_CURRENT: Final[Mapping[str, Fields]] = {
    "single": {},
    "random": {"max_trials": whole(1), "max_concurrent_trials": whole(0)},
    "grid": {"max_concurrent_trials": whole(0)},
    "adaptive_asha": {
        **_ASHA_FIELDS,
        "mode": _MODE,
        "max_rungs": whole(1),
        "bracket_rungs": list_of(whole()),
        "stop_once": flag,
    },
    "async_halving": {**_ASHA_FIELDS, "num_rungs": whole(1), "stop_once": flag},
}
_REMOVED: Final[Mapping[str, Fields]] = {
    "custom": {},
    "sync_halving": {
        "num_rungs": whole(1),
        "budget": max_length,
        "divisor": number(above=1),
        "train_stragglers": flag,
    },
    "adaptive": {
        "budget": max_length,
        "bracket_rungs": list_of(whole()),
        "divisor": number(above=1),
        "train_stragglers": flag,
        "max_rungs": whole(1),
        "mode": _MODE,
    },
    "adaptive_simple": {
        "max_trials": whole(1),
        "max_rungs": whole(1),
        "divisor": number(above=1),
        "mode": _MODE,
    },
}


def _without_stop_once(chosen: Object) -> Object:
    """Every search stops its trials only once now; the field says nothing any more."""
    return {key: value for key, value in chosen.items() if key != "stop_once"}


searcher: Final = converted(
    union(
        "name",
        common=_COMMON,
        members={**_CURRENT, **_REMOVED},
        message=(
            "is not an object where object[\"name\"] is one of 'single', 'random', 'grid', 'custom', "
            "'adaptive_asha', or 'async_halving'"
        ),
    ),
    _without_stop_once,
)

COMMON_FIELDS: Final = ("name", *_COMMON)

COMMON_DEFAULTS: Final[Mapping[str, Any]] = {
    "smaller_is_better": True,
    "source_trial_id": None,
    "source_checkpoint_uuid": None,
}
MEMBER_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "random": {"max_concurrent_trials": DEFAULT_CONCURRENT_TRIALS},
    "grid": {"max_concurrent_trials": DEFAULT_CONCURRENT_TRIALS},
    "adaptive_asha": {
        "mode": "standard",
        "divisor": DEFAULT_DIVISOR,
        "max_rungs": 5,
        "bracket_rungs": [],
        "max_concurrent_trials": DEFAULT_CONCURRENT_TRIALS,
    },
    "async_halving": {"divisor": DEFAULT_DIVISOR, "max_concurrent_trials": DEFAULT_CONCURRENT_TRIALS},
    "sync_halving": {"divisor": DEFAULT_DIVISOR, "train_stragglers": True},
    "adaptive": {
        "bracket_rungs": [],
        "divisor": DEFAULT_DIVISOR,
        "train_stragglers": True,
        "max_rungs": 5,
        "mode": "standard",
    },
    "adaptive_simple": {"divisor": DEFAULT_DIVISOR, "max_rungs": 5, "mode": "standard"},
}
REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "random": ("max_trials",),
    "adaptive_asha": ("max_trials",),
    "async_halving": ("num_rungs", "max_trials"),
}
"""Fields without which a search cannot run, beside the metric; any layer may bring them."""


def check_current_searcher(config: Mapping[str, Any]) -> None:
    """Refuse search methods that new experiments may not use; raises InvalidConfig."""
    chosen = config.get("searcher") or {}
    name = chosen.get("name")
    if name in _REMOVED:
        raise InvalidConfig(f"the '{name}' searcher has been removed and is not valid for new experiments")
    timed = chosen.get("max_time") is not None and chosen.get("time_metric") is not None
    if name in ("adaptive_asha", "async_halving") and not timed:
        raise InvalidConfig(f"the `{name}` searcher requires `max_time` and `time_metric` to be set")
