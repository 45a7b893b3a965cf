"""Vocabulary in which the shape of a configuration is written down.

A shape reads one value: it returns the value in its normal form together with everything that is wrong with it, and so
all mistakes of a configuration are reported at once. Null and absent are the same for every field of a record, so
nulls are gone from what a record returns.

Source: docs/reference/experiments.md 1.1 (unknown keys are refused at every level, null equals not given).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from libs.shapes.problems import Problem, missing, unknown_key

Object: TypeAlias = dict[str, Any]


class Read(NamedTuple):
    value: Any
    problems: tuple[Problem, ...] = ()


Shape: TypeAlias = Callable[[Any, str], Read]
"""(value, path of the value) -> what was read. Never changes the value it is given."""
Fields: TypeAlias = Mapping[str, Shape]
Rule: TypeAlias = Callable[[Any], str | None]
"""(value in normal form) -> what is wrong with it, or None."""

_YAML_1_1_FLAGS: Final = {"yes": True, "on": True, "no": False, "off": False}


def wrong(path: str, message: str) -> Read:
    return Read(None, (Problem(path, message),))


def json_type(value: Any) -> str:
    """The JSON name of the kind of ``value``."""
    if isinstance(value, bool):
        return "boolean"
    names = {type(None): "null", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), type(value).__name__)


def expected(what: str, value: Any, path: str) -> Read:
    return wrong(path, f"expected {what}, but got {json_type(value)}")


def anything(value: Any, _: str) -> Read:
    return Read(value)


def text(value: Any, path: str) -> Read:
    return Read(value) if isinstance(value, str) else expected("string", value, path)


def flag(value: Any, path: str) -> Read:
    """A boolean, or one of the words that YAML 1.1 took for one: people still write ``debug: yes``."""
    if isinstance(value, str) and value.lower() in _YAML_1_1_FLAGS:
        return Read(_YAML_1_1_FLAGS[value.lower()])
    return Read(value) if isinstance(value, bool) else expected("boolean", value, path)


MOST_COUNTED: Final = 2**31 - 1
"""Largest number of slots, seconds or days: what the columns hold that the scheduler copies them to."""


def whole(least: int | None = None, most: int | None = None) -> Shape:
    """An integer; 2.0 counts as one."""

    def read(value: Any, path: str) -> Read:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return expected("integer", value, path)
        if least is not None and value < least:
            return wrong(path, f"must be >= {least} but found {value}")
        if most is not None and value > most:
            return wrong(path, f"must be <= {most} but found {value}")
        return Read(value)

    return read


def number(above: float | None = None, least: float | None = None) -> Shape:
    def read(value: Any, path: str) -> Read:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return expected("number", value, path)
        if above is not None and value <= above:
            return wrong(path, f"must be > {above} but found {value}")
        if least is not None and value < least:
            return wrong(path, f"must be >= {least} but found {value}")
        return Read(value)

    return read


def one_of(*choices: str, message: str | None = None) -> Shape:
    listed = ", ".join(f'"{choice}"' for choice in choices)

    def read(value: Any, path: str) -> Read:
        if isinstance(value, str) and value in choices:
            return Read(value)
        return wrong(path, message or f"value must be one of {listed}")

    return read


def list_of(item: Shape) -> Shape:
    def read(value: Any, path: str) -> Read:
        if not isinstance(value, list):
            return expected("array", value, path)
        return _gather_list([item(element, f"{path}[{index}]") for index, element in enumerate(value)])

    return read


def map_of(item: Shape) -> Shape:
    """An object with any keys. Nulls in it are values, as nothing says that they are optional fields."""

    def read(value: Any, path: str) -> Read:
        if not isinstance(value, dict):
            return expected("object", value, path)
        return _gather_object({key: item(element, f"{path}.{key}") for key, element in value.items()})

    return read


def record(
    fields: Fields,
    *,
    required: Collection[str] = (),
    defaults: Mapping[str, Any] | None = None,
    ignored: Collection[str] = (),
    nullable: Collection[str] = (),
) -> Shape:
    """An object with known keys.

    required   keys without which it makes no sense, in any layer
    defaults   filled in at once: for elements of lists, which no later layer will complete
    ignored    keys that are accepted and dropped
    nullable   keys for which null is a value like any other
    """

    def read(value: Any, path: str) -> Read:
        if not isinstance(value, dict):
            return expected("object", value, path)
        given = {key: element for key, element in value.items() if element is not None or key in nullable}
        known = _gather_object({key: fields[key](given[key], f"{path}.{key}") for key in fields if key in given})
        unknown = [unknown_key(path, key) for key in value if key not in fields and key not in ignored]
        absent = [missing(path, key) for key in required if key not in given]
        return Read({**(defaults or {}), **known.value}, (*known.problems, *unknown, *absent))

    return read


def by_type(**shapes: Shape) -> Shape:
    """The shape that belongs to the JSON type of the value: ``by_type(string=..., array=...)``."""
    wanted = " or ".join(shapes)

    def read(value: Any, path: str) -> Read:
        shape = shapes.get(json_type(value))
        return shape(value, path) if shape else expected(wanted, value, path)

    return read


def union(tag: str, *, common: Fields, members: Mapping[str, Fields], message: str) -> Shape:
    """An object whose field ``tag`` says which further fields it has; without a tag it has the common ones only.

    What a member cannot do without is no matter of its shape, since another layer may still add it (complete.py).
    """

    def read(value: Any, path: str) -> Read:
        if not isinstance(value, dict):
            return expected("object", value, path)
        name = value.get(tag)
        if name is not None and (not isinstance(name, str) or name not in members):
            return wrong(path, message)
        return record({tag: text, **common, **(members[name] if name else {})})(value, path)

    return read


def checked(shape: Shape, *rules: Rule) -> Shape:
    """``shape``, and what has to hold beyond it. Rules see sound values only: the problems of the parts come first."""

    def read(value: Any, path: str) -> Read:
        result = shape(value, path)
        if result.problems:
            return result
        messages = [message for rule in rules if (message := rule(result.value)) is not None]
        return Read(result.value, tuple(Problem(path, message) for message in messages))

    return read


def converted(shape: Shape, convert: Callable[[Any], Any]) -> Shape:
    """``shape``, brought into the form in which it is stored."""

    def read(value: Any, path: str) -> Read:
        result = shape(value, path)
        return result if result.problems else Read(convert(result.value))

    return read


def _gather_list(reads: list[Read]) -> Read:
    return Read([read.value for read in reads], tuple(problem for read in reads for problem in read.problems))


def _gather_object(reads: Mapping[str, Read]) -> Read:
    problems = tuple(problem for read in reads.values() for problem in read.problems)
    return Read({key: read.value for key, read in reads.items()}, problems)
