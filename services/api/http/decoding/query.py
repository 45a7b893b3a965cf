"""Decodes the text of a query string, and of a path, into typed values.

Repeated keys are lists, dotted keys are fields of nested structs, unknown keys are ignored, names come in camelCase or
snake_case. Source: docs/reference/platform.md 1.2, docs/reference/tasks-and-cli.md 1.1.
"""

from __future__ import annotations

import re
from typing import Any, Final, Generic, TypeVar
from urllib.parse import parse_qsl

import msgspec.inspect as mi

from libs.errors import InvalidRequest
from services.api.http.decoding.body import convert
from services.api.http.decoding.protojson import Normalisers, StructPlan, describe, refuse_nul
from services.api.wire.base import INT32_MAX, INT32_MIN

Value = TypeVar("Value")

_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_INTEGER: Final = re.compile(r"-?[0-9]{1,20}")
_MAX_PARAMETERS: Final = 10_000


class QueryDecoder(Generic[Value]):
    """Decodes the query strings of one route into a struct of scalars, lists of scalars and structs of the same."""

    def __init__(self, kind: type[Value]) -> None:
        info = mi.type_info(kind)
        if not isinstance(info, mi.StructType):
            raise TypeError(f"a query is described by a struct, not by {kind!r}")
        self._kind = kind
        self._fields = _fields_by_spelling(info)
        plan = Normalisers(allow_nul=False).build(info)
        assert isinstance(plan, StructPlan)
        self._normalise = plan

    def __call__(self, query: bytes) -> Value:
        """The value of a raw query string (without ``?``); an empty one gives all defaults.

        Raises InvalidRequest, with the name of the parameter and what was expected.
        """
        tree: dict[str, Any] = {}
        if query:
            for key, text in _pairs(query):
                _put(tree, self._fields, key.split("."), text, key)
        return convert(self._normalise(tree, ""), self._kind)


def parse_path_int(name: str, text: str) -> int:
    """The 32-bit integer in a path parameter; raises InvalidRequest naming the parameter."""
    if not _INTEGER.fullmatch(text) or not INT32_MIN <= (number := int(text)) <= INT32_MAX:
        raise InvalidRequest(f"{name}: expected a 32-bit integer, got {describe(text)}")
    return number


def parse_path_text(name: str, text: str) -> str:
    """A path parameter as it is; raises InvalidRequest for text that cannot be the name of anything stored."""
    refuse_nul(text, name)
    return text


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        text = query.decode("ascii")
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS)
    except UnicodeDecodeError:
        raise InvalidRequest(f"{_not_utf8(query)} is not UTF-8") from None
    except ValueError:
        raise InvalidRequest(f"the query string has more than {_MAX_PARAMETERS} parameters") from None


def _not_utf8(query: bytes) -> str:
    """The parameter that does not decode, or the query string when it is not one with a readable name."""
    for key, value in parse_qsl(query.decode("latin-1"), encoding="latin-1"):
        if key.isascii() and key.isprintable() and not _is_utf8(value):
            return f"{key}: the text"
    return "the query string"


def _is_utf8(latin: str) -> bool:
    try:
        latin.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _fields_by_spelling(kind: mi.StructType) -> dict[str, mi.Field]:
    return {spelling: field for field in kind.fields for spelling in (field.name, field.encode_name)}


def _put(tree: dict[str, Any], fields: dict[str, mi.Field], names: list[str], text: str, key: str) -> None:
    """Add one parameter to the tree; ``names`` are the parts of ``key`` between its dots."""
    field = fields.get(names[0])
    if field is None:
        return
    kind = _unwrap(field.type)
    if isinstance(kind, mi.StructType):
        if len(names) > 1:
            nested = tree.setdefault(field.encode_name, {})
            _put(nested, _fields_by_spelling(kind), names[1:], text, key)
        return
    if len(names) > 1:
        return
    if isinstance(kind, (mi.ListType, mi.VarTupleType)):
        tree.setdefault(field.encode_name, []).append(_scalar(_unwrap(kind.item_type), text, key))
    elif text or isinstance(kind, mi.StrType):  # "limit=" says nothing
        tree[field.encode_name] = _scalar(kind, text, key)


def _scalar(kind: mi.Type, text: str, key: str) -> Any:
    if not isinstance(kind, mi.BoolType):
        return text
    if text.lower() not in _BOOLEANS:
        raise InvalidRequest(f"{key}: expected true or false, got {describe(text)}")
    return _BOOLEANS[text.lower()]


def _unwrap(kind: mi.Type) -> mi.Type:
    """The type behind annotations and optionality."""
    match kind:
        case mi.Metadata(type=inner):
            return _unwrap(inner)
        case mi.UnionType(types=types):
            members = [member for member in types if not isinstance(member, mi.NoneType)]
            return _unwrap(members[0])
        case _:
            return kind
