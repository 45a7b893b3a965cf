"""Filters of searches: from the JSON text that clients send to a tree, whose size and depth are bounded. Pure.

Source: docs/reference/platform.md 9.1, docs/reference/experiments.md 13.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias, TypeVar

import msgspec

from libs.errors import InvalidRequest

MOST_DEPTH: Final = 32
"""Groups within groups; the page of the reference makes a handful."""
MOST_NODES: Final = 1000
MOST_CHARACTERS: Final = 1_000_000
MOST_CHARACTERS_OF_A_NAME: Final = 1000

Value: TypeAlias = str | int | float | bool | None
Kind = TypeVar("Kind", bound=StrEnum)


class Operator(StrEnum):
    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    CONTAINS = "contains"
    NOT_CONTAINS = "notContains"
    IS_EMPTY = "isEmpty"
    NOT_EMPTY = "notEmpty"


class Location(StrEnum):
    """Where a column is; LOCATION_TYPE_ on the wire."""

    UNSPECIFIED = "UNSPECIFIED"
    EXPERIMENT = "EXPERIMENT"
    HYPERPARAMETERS = "HYPERPARAMETERS"
    VALIDATIONS = "VALIDATIONS"
    TRAINING = "TRAINING"
    CUSTOM_METRIC = "CUSTOM_METRIC"
    RUN = "RUN"
    RUN_HYPERPARAMETERS = "RUN_HYPERPARAMETERS"
    RUN_METADATA = "RUN_METADATA"


class ColumnType(StrEnum):
    """What a column holds; COLUMN_TYPE_ on the wire."""

    UNSPECIFIED = "UNSPECIFIED"
    TEXT = "TEXT"
    NUMBER = "NUMBER"
    DATE = "DATE"
    ARRAY = "ARRAY"


EMPTINESS: Final = frozenset({Operator.IS_EMPTY, Operator.NOT_EMPTY})
"""Operators without a value."""
NEGATIONS: Final = {
    Operator.NOT_EQUAL: Operator.EQUAL,
    Operator.NOT_CONTAINS: Operator.CONTAINS,
    Operator.NOT_EMPTY: Operator.IS_EMPTY,
}
"""Operator -> the one whose opposite it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A condition on one column. ``type`` is what the value says when the client says nothing."""

    column: str
    operator: Operator
    value: Value = None
    location: Location = Location.EXPERIMENT
    type: ColumnType = ColumnType.UNSPECIFIED

    @property
    def says_nothing(self) -> bool:
        """A field that somebody has yet to fill in is true."""
        return self.value is None and self.operator not in EMPTINESS


@dataclass(frozen=True, slots=True)
class Group:
    """All of its children, or any of them; one without children is true."""

    conjunction: Literal["and", "or"]
    children: tuple[Group | Field, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    root: Group
    show_archived: bool


def parse_filter(text: str) -> Filter:
    """The filter that a text holds. Raises InvalidRequest, which says what is wrong with which column."""
    if len(text) > MOST_CHARACTERS:
        raise InvalidRequest(f"filter: more than {MOST_CHARACTERS} characters")
    try:
        decoded = msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        raise InvalidRequest(f"filter: not JSON: {error}") from None
    except RecursionError:
        raise _too_deep() from None
    outer = _object(decoded, "the filter")
    show_archived = outer.get("showarchived")
    if show_archived is not None and not isinstance(show_archived, bool):
        raise InvalidRequest("filter: showArchived: expected true or false")
    root = _Parser().group(_object(outer.get("filtergroup"), "filterGroup"), depth=1)
    return Filter(root=root, show_archived=bool(show_archived))


class _Parser:
    """Counts what it reads."""

    def __init__(self) -> None:
        self._nodes = 0

    def node(self, value: Any, *, depth: int) -> Group | Field:
        keys = _object(value, "each of children")
        match keys.get("kind"):
            case "group":
                return self.group(keys, depth=depth)
            case "field":
                self._count()
                return _field(keys)
            case other:
                raise InvalidRequest(f"filter: kind: expected 'group' or 'field', got {_shown(other)}")

    def group(self, keys: Mapping[str, Any], *, depth: int) -> Group:
        self._count()
        if depth > MOST_DEPTH:
            raise _too_deep()
        if keys.get("kind") not in (None, "group"):
            raise InvalidRequest(f"filter: filterGroup: expected the kind 'group', got {_shown(keys['kind'])}")
        conjunction = keys.get("conjunction")
        if conjunction not in ("and", "or"):
            raise InvalidRequest(f"filter: conjunction: expected 'and' or 'or', got {_shown(conjunction)}")
        children = keys.get("children", [])
        children = [] if children is None else children
        if not isinstance(children, list):
            raise InvalidRequest(f"filter: children: expected a list, got {_shown(children)}")
        return Group(conjunction, tuple(self.node(child, depth=depth + 1) for child in children))

    def _count(self) -> None:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            raise InvalidRequest(f"filter: more than {MOST_NODES} groups and fields")


def _field(keys: Mapping[str, Any]) -> Field:
    column = keys.get("columnname")
    if not isinstance(column, str) or not 0 < len(column) <= MOST_CHARACTERS_OF_A_NAME or "\0" in column:
        raise InvalidRequest(f"filter: columnName: expected the name of a column, got {_shown(column)}")
    operator = keys.get("operator")
    if operator not in set(Operator):
        raise InvalidRequest(
            f"filter: column '{column}': operator: expected one of {', '.join(Operator)}, got {_shown(operator)}"
        )
    value = keys.get("value")
    if isinstance(value, dict | list):
        raise InvalidRequest(f"filter: column '{column}': value: expected text, a number, true, false or null")
    if isinstance(value, str) and "\0" in value:
        raise InvalidRequest(f"filter: column '{column}': value: text must not contain a NUL character")
    location = _member(Location, keys.get("location"), "LOCATION_TYPE_", column)
    return Field(
        column=column,
        operator=Operator(operator),
        value=value,
        location=Location.EXPERIMENT if location in (None, Location.UNSPECIFIED) else location,
        type=_member(ColumnType, keys.get("type"), "COLUMN_TYPE_", column) or _type_of(value),
    )


def _member(kind: type[Kind], value: Any, prefix: str, column: str) -> Kind | None:
    if value is None:
        return None
    what = "location" if kind is Location else "type"
    name = value.removeprefix(prefix) if isinstance(value, str) and value.startswith(prefix) else None
    if name not in set(kind):
        raise InvalidRequest(f"filter: column '{column}': unknown {what}: {_shown(value)}")
    return kind(name)


def _type_of(value: Value) -> ColumnType:
    if isinstance(value, bool):
        return ColumnType.UNSPECIFIED
    if isinstance(value, int | float):
        return ColumnType.NUMBER
    return ColumnType.TEXT if isinstance(value, str) else ColumnType.UNSPECIFIED


def _object(value: Any, what: str) -> dict[str, Any]:
    """Its keys in lower case: the reference reads them in any."""
    if not isinstance(value, dict):
        raise InvalidRequest(f"filter: {what}: expected an object, got {_shown(value)}")
    return {key.lower(): item for key, item in value.items()}


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str | int | float | bool) else type(value).__name__
    return "nothing" if value is None else text if len(text) <= 80 else text[:77] + "..."


def _too_deep() -> InvalidRequest:
    return InvalidRequest(f"filter: groups are nested more than {MOST_DEPTH} deep")
