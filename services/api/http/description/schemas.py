"""Schemas of messages: as msgspec has them, and what they hold of besides.

A plain integer has 32 bits, an enum is of texts, free-form JSON is ``JsonValue``. A reply has all its fields, but for
those that are left out while they are not set; of a request the zero values are no defaults worth telling.
Source: docs/reference/platform.md 1.1; services/api/wire/base.py.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import msgspec.inspect as mi

from services.api.wire.base import INT32_MAX, INT32_MIN

Schema: TypeAlias = dict[str, Any]
INT32: Final = {"type": "integer", "format": "int32", "minimum": INT32_MIN, "maximum": INT32_MAX}
TEXT: Final = {"type": "string"}
JSON: Final = {"$ref": "#/components/schemas/JsonValue"}
_PREFIX: Final = "#/components/schemas/"
_JSON_VALUE: Final = {
    "description": "Any JSON value.",
    "anyOf": [
        {"type": "null"},
        {"type": "boolean"},
        {"type": "number"},
        TEXT,
        {"type": "array", "items": JSON},
        {"type": "object", "additionalProperties": JSON},
    ],
}
_INPUT: Final = "Input"
_ZEROS: Final[tuple[object, ...]] = (None, "", "0", 0, 0.0, False, [], {})
_CODE: Final = re.compile(r"``(.+?)``", re.DOTALL)


def reference(name: str) -> Schema:
    """A reference to the schema of that name."""
    return {"$ref": _PREFIX + name}


def readable(text: str | None) -> str:
    """A docstring as Markdown; empty for none."""
    return _CODE.sub(r"`\1`", inspect.cleandoc(text)) if text else ""


class Schemas:
    """The schemas of all messages, each made for those who send it or for those who receive it."""

    def __init__(self, *, sent: Sequence[Any], received: Sequence[Any], others: Mapping[str, Schema]) -> None:
        """``sent`` and ``received`` by the api; ``others`` are schemas by name that no type stands for."""
        outer, self._named = msgspec.json.schema_components([*sent, *received], ref_template=_PREFIX + "{name}")
        replies = {repr(kind): schema for kind, schema in zip(sent, outer, strict=False)}
        requests = {repr(kind): schema for kind, schema in zip(received, outer[len(sent) :], strict=True)}
        self._unset = _left_out_while_unset([*sent])
        in_replies, in_requests = self._below(replies.values()), self._below(requests.values())
        self._twice = self._with_objects(in_replies & in_requests)
        self._replies = {kind: self._reply(schema) for kind, schema in replies.items()}
        self._requests = {kind: self._request(schema) for kind, schema in requests.items()}
        components = {name: self._reply(self._named[name], name) for name in in_replies}
        for name in in_requests:
            if name in self._twice or name not in in_replies:
                components[self._input_name(name)] = self._request(self._named[name])
        self.components: dict[str, Schema] = {**components, **others, "JsonValue": _JSON_VALUE}

    def of_reply(self, kind: Any) -> Schema:
        return self._replies[repr(kind)]

    def of_request(self, kind: Any) -> Schema:
        return self._requests[repr(kind)]

    def object_of(self, schema: Schema) -> Schema | None:
        """The object with fields that a schema of a request means, be it or null; None for anything else."""
        for one in (schema, *schema.get("anyOf", ())):
            found = self.components.get(one.get("$ref", "").removeprefix(_PREFIX))
            if found is not None and "properties" in found:
                return found
        return None

    def _input_name(self, name: str) -> str:
        return name + _INPUT if name in self._twice else name

    def _below(self, roots: Iterable[Any]) -> set[str]:
        return names_below(roots, self._named)

    def _with_objects(self, names: set[str]) -> set[str]:
        """Those that are objects, or have one in them: for all others, sending and receiving is the same."""
        return {
            name
            for name in names
            if any("properties" in self._named[each] for each in {name, *self._below([reference(name)])})
        }

    def _reply(self, schema: Schema, name: str = "") -> Schema:
        made: Schema = _as_held(schema, lambda each: each, default=lambda _: False)
        if "properties" in made:
            made["required"] = [each for each in made["properties"] if each not in self._unset.get(name, ())]
        return made

    def _request(self, schema: Schema) -> Schema:
        made: Schema = _as_held(schema, self._input_name, default=_is_worth_telling)
        return made


def _is_worth_telling(default: Any) -> bool:
    zero = any(default == each and type(default) is type(each) for each in _ZEROS)
    return not zero and not str(default).endswith("_UNSPECIFIED")


def _as_held(part: Any, renamed: Any, *, default: Any) -> Any:
    """A copy with what decoders and encoders hold of it."""
    if isinstance(part, list):
        return [_as_held(each, renamed, default=default) for each in part]
    if not isinstance(part, dict):
        return part
    if not part:
        return JSON
    if "$ref" in part:
        name = part["$ref"].removeprefix(_PREFIX)
        return {**part, "$ref": _PREFIX + renamed(name)} if _keeps(part, default) else reference(renamed(name))
    made: Schema = {}
    for key, value in part.items():
        if key == "properties":
            made[key] = {name: _as_held(each, renamed, default=default) for name, each in value.items()}
        elif key == "description":
            made[key] = readable(value)
        elif key == "default":
            if default(value):
                made[key] = value
        elif key != "title" and (key != "required" or value):
            made[key] = _as_held(value, renamed, default=default) if isinstance(value, dict | list) else value
    return _completed(made)


def _keeps(part: Schema, default: Any) -> bool:
    return "default" in part and bool(default(part["default"]))


def _completed(made: Schema) -> Schema:
    if "enum" in made:
        return {"type": "string", **made} if all(isinstance(each, str) for each in made["enum"]) else made
    match made.get("type"):
        case "integer":
            return {**INT32, **made}
        case "array" if "items" not in made and "prefixItems" not in made:
            return {**made, "items": JSON}
        case "object" if "properties" not in made and "additionalProperties" not in made:
            return {**made, "additionalProperties": JSON}
    return made


def names_below(roots: Iterable[Any], named: Mapping[str, Schema]) -> set[str]:
    """Names of the schemas that parts of a document refer to, directly or through other schemas."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        for name in _names_in(waiting.pop()):
            if name not in found:
                found.add(name)
                waiting.append(named[name])
    return found


def _names_in(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if str(part.get("$ref", "")).startswith(_PREFIX):
            yield part["$ref"].removeprefix(_PREFIX)
        for inner in part.values():
            yield from _names_in(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _names_in(inner)


def _left_out_while_unset(kinds: Sequence[Any]) -> dict[str, set[str]]:
    """Of each message below ``kinds`` the fields that a reply may be without, as they are called in JSON."""
    found: dict[str, set[str]] = {}
    seen: set[type] = set()
    waiting: list[Any] = list(mi.multi_type_info(kinds))
    while waiting:
        info = waiting.pop()
        if isinstance(info, mi.StructType):
            if info.cls in seen:
                continue
            seen.add(info.cls)
            omits = info.cls.__struct_config__.omit_defaults
            found[info.cls.__name__] = {
                field.encode_name
                for field in msgspec.structs.fields(info.cls)  # which know of defaults that are no JSON
                if field.default is msgspec.UNSET or (omits and not field.required)
            }
            waiting += [field.type for field in info.fields]
        else:
            for name in ("types", "item_type", "item_types", "value_type", "type"):
                inner = getattr(info, name, None)
                waiting += inner if isinstance(inner, list | tuple) else [inner] if isinstance(inner, mi.Type) else []
    return found
