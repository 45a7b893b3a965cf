"""The hyperparameter space of a search, decoded once from the stored configuration.

Keys are sorted here and nowhere else, at every depth: the order of draws and of grid axes follows from it.
Source: docs/reference/experiments.md 2.1.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from libs.searchers.errors import InvalidSpace

Count = Annotated[int, Meta(ge=1)]


class Const(Struct, frozen=True, tag_field="type", tag="const"):
    """A value that every trial gets as it stands."""

    val: Any


class Int(Struct, frozen=True, tag_field="type", tag="int"):
    """Whole numbers, both ends included; ``count`` is the number of points on a grid."""

    minval: int
    maxval: int
    count: Count | None = None


class Double(Struct, frozen=True, tag_field="type", tag="double"):
    """Real numbers from an interval."""

    minval: float
    maxval: float
    count: Count | None = None


class Log(Struct, frozen=True, tag_field="type", tag="log"):
    """``base`` to the power of an exponent between ``minval`` and ``maxval``."""

    base: Annotated[float, Meta(gt=0)]
    minval: float
    maxval: float
    count: Count | None = None


class Categorical(Struct, frozen=True, tag_field="type", tag="categorical"):
    """One of several values of any kind."""

    vals: Annotated[tuple[Any, ...], Meta(min_length=1)]


class SearchSpace(Struct, frozen=True):
    """Named hyperparameters and nested spaces, sorted by name."""

    items: tuple[tuple[str, "Node"], ...]


Hyperparameter = Const | Int | Double | Log | Categorical
Node = Hyperparameter | SearchSpace


def parse_space(hyperparameters: Mapping[str, Any], path: str = "hyperparameters") -> SearchSpace:
    """Decode the ``hyperparameters`` section, in stored form or with constants written as plain values.

    path  where the section stands, for error messages
    A mapping with a ``type`` is a hyperparameter, one without is a nested space, anything else a constant; what looks
    like a hyperparameter inside a list is part of that constant. Raises InvalidSpace.
    """
    return SearchSpace(
        tuple((key, _parse_node(hyperparameters[key], f"{path}.{key}")) for key in sorted(hyperparameters))
    )


def _parse_node(value: Any, path: str) -> Node:
    if not isinstance(value, Mapping):
        return Const(value)
    if "type" not in value:
        return parse_space(value, path)
    try:
        hyperparameter: Hyperparameter = msgspec.convert(value, Hyperparameter)
    except msgspec.ValidationError as error:
        raise InvalidSpace(f"{path}: {error}") from error
    return hyperparameter
