"""Filters of lists (RFC 7644 3.4.2.2), of which providers of identities use one: ``attribute eq "value"``. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import msgspec

from services.api.scim.errors import InvalidFilter
from services.api.scim.values import is_storable

LONGEST: Final = 2048
_EQUALS: Final = re.compile(r'\s*([A-Za-z][A-Za-z0-9$_.:-]*)\s+eq\s+("(?:[^"\\]|\\.)*")\s*', re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Equals:
    """Resources of whom an attribute is this; ``attribute`` is in lower case."""

    attribute: str
    value: str


def parse(text: str, attributes: Collection[str], *, schema: str) -> Equals | None:
    """What a filter asks for; None for an empty one, which lets everything through.

    attributes  what may be searched by
    schema      the URN that may stand in front of an attribute
    Raises InvalidFilter.
    """
    if not text.strip():
        return None
    found = _EQUALS.fullmatch(text) if len(text) <= LONGEST else None
    if found is None:
        raise InvalidFilter(f'filter: only one comparison is understood, as in: {next(iter(attributes))} eq "value"')
    name = found[1]
    if name.lower().startswith(f"{schema.lower()}:"):
        name = name[len(schema) + 1 :]
    known = {attribute.lower() for attribute in attributes}
    if name.lower() not in known:
        raise InvalidFilter(f"filter: cannot search by {name[:100]}, only by {', '.join(attributes)}")
    return Equals(name.lower(), _text(found[2]))


def _text(literal: str) -> str:
    """What a JSON string means."""
    try:
        value = msgspec.json.decode(literal.encode(), type=str)
    except (msgspec.DecodeError, UnicodeError):
        raise InvalidFilter("filter: the value is no JSON string") from None
    if not is_storable(value):
        raise InvalidFilter("filter: the value has characters that no name can have")
    return value
