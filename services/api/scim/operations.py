"""Operations of a PATCH, one per attribute (RFC 7644 3.5.2), as Okta and Entra ID send them. Pure.

An operation without a path has an object of attributes; each of them becomes one operation, and its name may be a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from services.api.scim.errors import InvalidPath, InvalidSyntax
from services.api.scim.values import LONGEST, attribute, is_storable

MOST: Final = 1000
_PATH: Final = re.compile(
    r'([A-Za-z$][\w$-]*)(?:\[\s*(\w+)\s+eq\s+("(?:[^"\\]|\\.)*"|true|false)\s*\])?(?:\.(\w+))?', re.IGNORECASE
)
_VERBS: Final[Mapping[str, Verb]] = {"add": "add", "replace": "replace", "remove": "remove"}

Verb = Literal["add", "replace", "remove"]


@dataclass(frozen=True, slots=True)
class Operation:
    """What is to happen to one attribute.

    attribute  in lower case
    selector   which of its values, as attribute and value; None is all
    sub        the part of the attribute, or of the selected values; empty is all of it
    is_foreign of another schema than the resource's own
    """

    verb: Verb
    attribute: str
    selector: tuple[str, str] | None
    sub: str
    value: Any
    path: str
    is_foreign: bool = False


def operations(body: Mapping[str, Any], *, schema: str) -> Iterator[Operation]:
    """In their order. Raises InvalidSyntax, InvalidPath.

    schema  of the resource; its URN may stand in front of a path
    """
    given = attribute(body, "Operations")
    if not isinstance(given, list) or not given:
        raise InvalidSyntax("Operations: a list of operations is required")
    if len(given) > MOST:
        raise InvalidSyntax(f"Operations: there may be {MOST}, and no more")
    for each in given:
        if not isinstance(each, dict):
            raise InvalidSyntax("Operations: each must be an object with an op")
        verb = _VERBS.get(str(attribute(each, "op")).lower())
        if verb is None:
            raise InvalidSyntax("op: must be add, replace or remove")
        path, value = attribute(each, "path"), attribute(each, "value")
        if path is not None and not isinstance(path, str):
            raise InvalidPath("path: must be a text")
        if path and path.lower() != schema.lower():
            yield _operation(verb, path, value, schema)
        elif verb == "remove":
            raise InvalidPath("path: required for op remove")
        elif not isinstance(value, dict):
            raise InvalidSyntax("value: must be an object of attributes where there is no path")
        else:
            for key, inner in value.items():
                yield _operation(verb, key, inner, schema)


def _operation(verb: Verb, path: str, value: Any, schema: str) -> Operation:
    short = path[len(schema) + 1 :] if path.lower().startswith(f"{schema.lower()}:") else path
    if short.lower().startswith("urn:"):
        return Operation(verb, short.lower(), None, "", value, path, is_foreign=True)
    found = _PATH.fullmatch(short)
    if found is None:
        raise InvalidPath(f"path: {path[:100]!r} is not understood")
    name, key, literal, sub = found.groups()
    selector = None if key is None else (key.lower(), _text(literal))
    return Operation(verb, name.lower(), selector, sub or "", value, path)


def _text(literal: str) -> str:
    """What is compared with: the text of a JSON string, ``true`` or ``false``. What is added under it is stored."""
    if not literal.startswith('"'):
        return literal.lower()
    try:
        found = msgspec.json.decode(literal.encode(), type=str)
    except (msgspec.DecodeError, UnicodeError):
        raise InvalidPath(f"path: {literal[:100]!r} is no JSON string") from None
    if len(found) > LONGEST or not is_storable(found):
        raise InvalidPath(f"path: {literal[:100]!r} has characters that cannot be stored, or too many")
    return found
