"""The searcher section: what each search method says of its fields, and the methods that were removed.

Methods that no longer exist can still be read, since experiments that used them are still shown.
Source: docs/reference/experiments.md 1.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from libs.searchers.methods.halving import DEFAULT_DIVISOR
from libs.searchers.methods.table import METHODS
from libs.shapes.lengths import max_length
from libs.shapes.problems import InvalidConfig
from libs.shapes.shape import Fields, Object, converted, flag, list_of, number, one_of, text, union, whole

_MODE: Final = one_of("aggressive", "standard", "conservative")
_COMMON: Final[Fields] = {
    "metric": text,
    "smaller_is_better": flag,
    "source_trial_id": whole(),
    "source_checkpoint_uuid": text,
    "max_length": max_length,
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
        members={**{name: method.fields for name, method in METHODS.items()}, **_REMOVED},
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
    **{name: method.defaults for name, method in METHODS.items()},
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
REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {name: method.required for name, method in METHODS.items()}
"""Fields without which a search cannot run, beside the metric; any layer may bring them."""


def check_current_searcher(config: Mapping[str, Any]) -> None:
    """Refuse search methods that new experiments may not use; raises InvalidConfig."""
    chosen = config.get("searcher") or {}
    name = chosen.get("name")
    if name in _REMOVED:
        raise InvalidConfig(f"the '{name}' searcher has been removed and is not valid for new experiments")
    timed = chosen.get("max_time") is not None and chosen.get("time_metric") is not None
    method = METHODS.get(name or "")
    if method is not None and method.is_timed and not timed:
        raise InvalidConfig(f"the `{name}` searcher requires `max_time` and `time_metric` to be set")
