"""Normalises JSON in any spelling that protobuf allows to the one spelling that msgspec takes.

For a type, ``normaliser(type)`` builds a function from what a plain JSON decoder gives to what ``msgspec.convert``
takes: field names in camelCase or snake_case, null for absent, enums by number, integers as strings, non-finite floats
by name, base64 in either alphabet. What is still wrong afterwards is left for ``convert`` to complain about; raised
here is only what ``convert`` would let through: integers out of range, text that PostgreSQL cannot store.
Source: docs/reference/platform.md 1.2, docs/reference/tasks-and-cli.md 1.1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec.inspect as mi

from libs.errors import InvalidRequest
from services.api.wire.base import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, WireEnum, double

Normalise: TypeAlias = Callable[[Any, str], Any]
"""(value, path of the value for messages) -> value for ``msgspec.convert``"""

MAX_DEPTH: Final = 100
FREE_FORM_INTEGER_DIGITS: Final = 21
"""Free-form integers of that many digits become floats, which is what the reference makes of all of them."""

_LEAST_LONG_INTEGER: Final = 10 ** (FREE_FORM_INTEGER_DIGITS - 1)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,400}(\.[0-9]{0,400})?([eE][+-]?[0-9]{1,6})?")
_NON_FINITE: Final = {"nan": float("nan"), "infinity": float("inf"), "-infinity": float("-inf")}
_NULL_ONLY: Final = (mi.NoneType,)


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """One field of a struct: its name on the wire, whether null is a value for it, and how to treat its value."""

    wire_name: str
    nullable: bool
    normalise: Normalise


class StructPlan:
    """The fields of a struct by every spelling; filled in after creation, because structs may contain themselves."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.fields: dict[str, FieldPlan] = {}

    def __call__(self, value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            return value
        known: dict[str, Any] = {}
        for key, item in value.items():
            field = self.fields.get(key)
            if field is None or (item is None and not field.nullable):
                continue
            known[field.wire_name] = None if item is None else field.normalise(item, join(path, field.wire_name))
        return known


class Normalisers:
    """Builds normalisers; one instance per decoder, which decides whether NUL characters may pass."""

    def __init__(self, *, allow_nul: bool) -> None:
        self._allow_nul = allow_nul
        self._structs: dict[type, StructPlan] = {}

    def build(self, kind: mi.Type) -> Normalise:  # noqa: PLR0911  (one row per kind of type)
        match kind:
            case mi.Metadata(type=inner, extra=extra):
                return as_int64_text if (extra or {}).get("int64") else self.build(inner)
            case mi.StructType():
                return self._struct(kind)
            case mi.EnumType(cls=cls) if issubclass(cls, WireEnum):
                return lambda value, path: as_enum_name(cls, value, path)
            case mi.IntType():
                return as_int32
            case mi.FloatType():
                return as_float
            case mi.BytesType():
                return lambda value, path: as_base64(value)
            case mi.StrType():
                return self._text
            case mi.ListType(item_type=item) | mi.VarTupleType(item_type=item) | mi.SetType(item_type=item):
                return _sequence(self.build(item))
            case mi.DictType(value_type=item):
                return self._mapping(self.build(item))
            case mi.UnionType(types=types):
                return self._union(types)
            case mi.AnyType():
                return self._free_form
            case _:
                return lambda value, path: value

    def _struct(self, kind: mi.StructType) -> Normalise:
        if kind.cls in self._structs:
            return self._structs[kind.cls]
        plan = self._structs[kind.cls] = StructPlan(kind.cls)
        for field in kind.fields:
            built = FieldPlan(field.encode_name, admits_null(field.type), self.build(field.type))
            for spelling in (field.name, field.encode_name):
                plan.fields[spelling] = built
        return plan

    def _union(self, types: tuple[mi.Type, ...]) -> Normalise:
        members = [member for member in types if not isinstance(member, _NULL_ONLY)]
        if len(members) == 1:
            return self.build(members[0])
        if any(isinstance(member, mi.FloatType) for member in members):
            return as_double
        return self._free_form

    def _mapping(self, item: Normalise) -> Normalise:
        def normalise(value: Any, path: str) -> Any:
            if not isinstance(value, dict):
                return value
            return {self._text(key, path): item(entry, join(path, key)) for key, entry in value.items()}

        return normalise

    def _text(self, value: Any, path: str) -> Any:
        if isinstance(value, str) and not self._allow_nul:
            refuse_nul(value, path)
        return value

    def _free_form(self, value: Any, path: str, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            raise InvalidRequest(f"{path or 'body'}: nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, dict):
            return {
                self._text(key, path): self._free_form(item, join(path, key), depth + 1) for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._free_form(item, path, depth + 1) for item in value]
        if isinstance(value, int) and abs(value) >= _LEAST_LONG_INTEGER:
            return _finite(value, path)  # numbers of a protobuf Struct are doubles
        return value


def join(path: str, name: str) -> str:
    """The path of a field below ``path``; a name that is not a plain word (user's own keys) is cut to stay readable."""
    short = name if len(name) <= 64 else name[:61] + "..."
    return f"{path}.{short}" if path else short


def admits_null(kind: mi.Type) -> bool:
    """Is null a value of this type, rather than the absence of one?"""
    match kind:
        case mi.Metadata(type=inner):
            return admits_null(inner)
        case mi.UnionType(types=types):
            return any(isinstance(member, mi.NoneType) for member in types)
        case _:
            return isinstance(kind, (mi.NoneType, mi.AnyType))


def refuse_nul(text: str, path: str) -> None:
    """Raises InvalidRequest for text with a NUL character, which PostgreSQL cannot store in text or jsonb."""
    if "\0" in text:
        raise InvalidRequest(f"{path or 'body'}: expected text without NUL characters")


def as_enum_name(cls: type[WireEnum], value: Any, path: str) -> str:
    """The name of a member, from its name or number; raises InvalidRequest, with the names there are."""
    number = as_int(value)
    if isinstance(number, int) and not isinstance(number, bool):
        member = cls.by_number(number)
    else:
        member = next((member for member in cls if member.value == value), None)
    if member is None:
        raise InvalidRequest(f"{path or 'body'}: expected one of {_names(cls)}, got {describe(value)}")
    return str(member.value)


def as_int32(value: Any, path: str) -> Any:
    """A 32-bit integer from a number or digits."""
    number = as_int(value)
    if isinstance(number, int) and not INT32_MIN <= number <= INT32_MAX:
        raise InvalidRequest(f"{path or 'body'}: expected a 32-bit integer, got {str(number)[:40]}")
    return number


def as_int64_text(value: Any, path: str) -> Any:
    """The digits of a 64-bit integer from a number or digits; raises InvalidRequest for anything else."""
    number = as_int(value)
    if not isinstance(number, int) or isinstance(number, bool):
        raise InvalidRequest(f"{path or 'body'}: expected a 64-bit integer, got {describe(value)}")
    if not INT64_MIN <= number <= INT64_MAX:
        raise InvalidRequest(f"{path or 'body'}: expected a 64-bit integer, got {str(number)[:40]}")
    return str(number)


def as_int(value: Any) -> Any:
    """An integer from digits or an integral float; anything else unchanged."""
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value


def as_float(value: Any, path: str) -> Any:
    """A float from a number, digits or the name of a non-finite value in any case; anything else unchanged."""
    if isinstance(value, str):
        if value.lower() in _NON_FINITE:
            return _NON_FINITE[value.lower()]
        return _finite(value, path) if _NUMBER.fullmatch(value) else value
    if isinstance(value, int) and not isinstance(value, bool):
        return _finite(value, path)
    return value


def as_double(value: Any, path: str) -> Any:
    """Like ``as_float``, for ``Double``: non-finite values stay names."""
    number = as_float(value, path)
    return double(number) if isinstance(number, float) else number


def as_base64(value: Any) -> Any:
    """Base64 with the URL alphabet or without padding to the standard form; anything else unchanged."""
    if not isinstance(value, str):
        return value
    padded = value + "=" * (-len(value) % 4)
    return padded.replace("-", "+").replace("_", "/")


def describe(value: Any) -> str:
    """A value as an error message may show it: its JSON type, and short texts themselves."""
    if isinstance(value, str):
        return f"'{value}'" if len(value) <= 40 else "a longer text"
    names: Mapping[type, str] = {dict: "an object", list: "an array", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def struct_types(kind: mi.Type, seen: set[type] | None = None) -> Iterator[mi.Type]:
    """Every type inside a type, itself first, each struct once."""
    seen = set() if seen is None else seen
    if isinstance(kind, mi.StructType):
        if kind.cls in seen:
            return
        seen.add(kind.cls)
    yield kind
    match kind:
        case mi.Metadata(type=inner):
            yield from struct_types(inner, seen)
        case mi.StructType(fields=fields):
            for field in fields:
                yield from struct_types(field.type, seen)
        case mi.ListType(item_type=item) | mi.VarTupleType(item_type=item) | mi.SetType(item_type=item):
            yield from struct_types(item, seen)
        case mi.DictType(value_type=item):
            yield from struct_types(item, seen)
        case mi.UnionType(types=types):
            for member in types:
                yield from struct_types(member, seen)
        case _:
            return


def _sequence(item: Normalise) -> Normalise:
    def normalise(value: Any, path: str) -> Any:
        if not isinstance(value, list):
            return value
        return [item(entry, f"{path}[{index}]") for index, entry in enumerate(value)]

    return normalise


def _finite(number: int | str, path: str) -> float:
    try:
        value = float(number)
    except OverflowError:
        value = math.inf
    if math.isinf(value):
        raise InvalidRequest(f"{path or 'body'}: the number is too large")
    return value


def _names(cls: type[WireEnum]) -> str:
    names = [str(member.value) for member in cls]
    return ", ".join(names) if len(names) <= 20 else ", ".join([*names[:20], "..."])
