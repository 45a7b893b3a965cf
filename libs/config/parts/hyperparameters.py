"""The hyperparameter space: constants, ranges and choices, nested as the model likes them.

In its normal form every leaf is a typed object; a value that was written bare has become a constant.
Source: docs/reference/experiments.md 2.1, 1.5 (grid conditional) and 15 (defect 18).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from libs.shapes.problems import Problem
from libs.shapes.shape import (
    Object,
    Read,
    Shape,
    anything,
    checked,
    list_of,
    map_of,
    number,
    record,
    text,
    whole,
    wrong,
)

_RANGES: Final = ("int", "double", "log")
_UNKNOWN_TYPE: Final = (
    'if a hyperparameter object\'s ["type"] is set, it must be one of "int", "double", "log", const", or "categorical"'
)


_LEAST_INT, _MOST_INT = -(2**63), 2**63 - 1
"""What a draw of two words and the clients' integers hold."""


def _ordered(hyperparameter: Object) -> str | None:
    ordered = hyperparameter["minval"] < hyperparameter["maxval"]
    return None if ordered else "minval must be less than maxval"


def _finite_width(hyperparameter: Object) -> str | None:
    """A draw is a share of the width, so bounds of opposite signs can be too large together."""
    try:
        width = float(hyperparameter["maxval"]) - float(hyperparameter["minval"])
    except OverflowError:  # a whole number beyond any double
        width = math.inf
    return None if math.isfinite(width) else "minval and maxval are too far apart for a double"


def _finite_powers(hyperparameter: Object) -> str | None:
    """The bounds are exponents: what is drawn lies between two powers of the base."""
    try:
        for exponent in (hyperparameter["minval"], hyperparameter["maxval"]):
            math.pow(hyperparameter["base"], exponent)
    except OverflowError:
        return "base raised to minval or to maxval is too large for a double"
    return None


def _not_empty(hyperparameter: Object) -> str | None:
    return None if hyperparameter["vals"] else "vals must not be empty"


_int64: Final = whole(_LEAST_INT, _MOST_INT)
_KINDS: Final[dict[str, Shape]] = {
    "const": record({"type": text, "val": anything}, required=("val",), nullable=("val",)),
    "int": checked(
        record(
            {"type": text, "minval": _int64, "maxval": _int64, "count": whole(1)},
            required=("minval", "maxval"),
        ),
        _ordered,
    ),
    "double": checked(
        record(
            {"type": text, "minval": number(), "maxval": number(), "count": whole(1)},
            required=("minval", "maxval"),
        ),
        _ordered,
        _finite_width,
    ),
    "log": checked(
        record(
            {"type": text, "base": number(above=0), "minval": number(), "maxval": number(), "count": whole(1)},
            required=("base", "minval", "maxval"),
        ),
        _ordered,
        _finite_width,
        _finite_powers,
    ),
    "categorical": checked(record({"type": text, "vals": list_of(anything)}, required=("vals",)), _not_empty),
}


def hyperparameter(value: Any, path: str) -> Read:
    """A typed hyperparameter, a nested space, or any other value, which is a constant."""
    if not isinstance(value, dict):
        return Read({"type": "const", "val": value})
    if "type" not in value:
        return map_of(hyperparameter)(value, path)
    kind = value["type"]
    shape = _KINDS.get(kind) if isinstance(kind, str) else None
    return shape(value, path) if shape else wrong(path, _UNKNOWN_TYPE)


hyperparameters: Final = map_of(hyperparameter)


def is_nested_space(value: Any) -> bool:
    return isinstance(value, dict) and "type" not in value


def ranges_without_count(space: Object, path: str) -> list[Problem]:
    """What a grid search cannot make an axis of: ranges without ``count``, those inside constant lists included."""
    return [Problem(place, "grid search is in use but count was not provided") for place in _uncounted(space, path)]


def _uncounted(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for index, element in enumerate(value):
            yield from _uncounted(element, f"{path}[{index}]")
    elif is_nested_space(value):
        for key, element in value.items():
            yield from _uncounted(element, f"{path}.{key}")
    elif isinstance(value, dict):
        if value["type"] == "const" and isinstance(value.get("val"), list):
            yield from _uncounted(value["val"], path)
        elif value["type"] in _RANGES and value.get("count") is None:
            yield path
