"""Operations of a PATCH, one per attribute (RFC 7644 3.5.2), as Okta and Entra ID send them. Pure.

An operation without a path has an object of attributes; each of them becomes one operation, and its name may be a path.
``PatchOp`` of scim2-models would do that too, but refuses what providers say of attributes that are not kept, or else
takes misspelt ones as well, and has one kind of error for requests of a wrong form and for wrong values.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from scim2_models import InvalidPathException, Path, Resource

from services.api.scim.errors import InvalidPath, InvalidSyntax
from services.api.scim.values import attribute, is_storable

MOST: Final = 1000
"""Attributes that the operations of a request may name together; each is work, whichever way it is written."""
LONGEST_PATH: Final = 384
"""Characters; the longest address has 254, and the schema may stand in front of the attribute."""
_MOST_WORDS: Final = 16
"""Of a path, as ``type eq "work" and primary eq true`` has 7. Each comparison is made with each address of a user."""
_MOST_PARENTHESES: Final = 4
"""The parser of the library makes a path of many of them far dearer than its length."""
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_AFTER_ATTRIBUTE: Final = re.compile(r"[.\[\s]")
_VERBS: Final[Mapping[str, Verb]] = {"add": "add", "replace": "replace", "remove": "remove"}

Verb = Literal["add", "replace", "remove"]


@dataclass(frozen=True, slots=True)
class Operation:
    """What is to happen to one attribute, or to a part of it."""

    verb: Verb
    path: Path[Any]
    value: Any

    @property
    def attribute(self) -> str:
        """In lower case."""
        return self.path.parts[0].lower()

    @property
    def is_whole(self) -> bool:
        """Whether it names neither a part of the attribute nor some of its values."""
        return len(self.path.parts) == 1 and self.path.value_filter is None


def operations(body: Mapping[str, Any], *, model: type[Resource[Any]], ignored: Collection[str]) -> Iterator[Operation]:
    """In their order, without those of other schemas. Raises InvalidSyntax, InvalidPath.

    ignored  attributes that are not kept, in lower case
    """
    given = attribute(body, "Operations")
    if not isinstance(given, list) or not given:
        raise InvalidSyntax("Operations: a list of operations is required")
    if len(given) > MOST:
        raise InvalidSyntax(f"Operations: there may be {MOST}, and no more")
    schema = f"{model.__schema__}:".lower()
    for count, (verb, text, value) in enumerate((single for each in given for single in _single(each, schema)), 1):
        if count > MOST:
            raise InvalidSyntax(f"Operations: there may be {MOST} attributes in all, and no more")
        if not _is_kept(text.lower(), schema, ignored):
            continue
        operation = Operation(verb, _path(text, model), value)
        if operation.path.resolve() is None:
            raise InvalidPath(f"path: there is no attribute {text[:100]!r}")
        yield operation


def _single(operation: Any, schema: str) -> Iterator[tuple[Verb, str, Any]]:
    """One for each attribute, with its path."""
    if not isinstance(operation, dict):
        raise InvalidSyntax("Operations: each must be an object with an op")
    verb = _VERBS.get(str(attribute(operation, "op")).lower())
    if verb is None:
        raise InvalidSyntax("op: must be add, replace or remove")
    path, value = attribute(operation, "path"), attribute(operation, "value")
    if path is not None and not isinstance(path, str):
        raise InvalidPath("path: must be a text")
    if path and f"{path}:".lower() != schema:
        yield verb, path, value
    elif verb == "remove":
        raise InvalidPath("path: required for op remove")
    elif not isinstance(value, dict):
        raise InvalidSyntax("value: must be an object of attributes where there is no path")
    else:
        for key, inner in value.items():
            yield verb, key, inner


def _is_kept(path: str, schema: str, ignored: Collection[str]) -> bool:
    """Whether its attribute is one of the schema, and not ignored. Found without the parser, which is dear."""
    own = path.removeprefix(schema)
    return not own.startswith("urn:") and _AFTER_ATTRIBUTE.split(own, 1)[0] not in ignored


def _path(text: str, model: type[Resource[Any]]) -> Path[Any]:
    bound: type[Path[Any]] = Path.__class_getitem__(model)
    try:
        if text and len(text) <= LONGEST_PATH and is_storable(text) and _is_short(_QUOTED.sub('""', text)):
            return bound(text)
    except InvalidPathException:
        pass
    raise InvalidPath(f"path: {text[:100]!r} is not understood")


def _is_short(unquoted: str) -> bool:
    return len(unquoted.split()) <= _MOST_WORDS and unquoted.count("(") <= _MOST_PARENTHESES
