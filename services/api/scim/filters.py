"""Filters of lists (RFC 7644 3.4.2.2), of which providers of identities use one: ``attribute eq "value"``. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from scim2_models import InvalidFilterException, ScimFilter
from scim2_models.path import CompareOperator, Comparison

from services.api.scim.errors import InvalidFilter
from services.api.scim.values import is_storable

LONGEST: Final = 2048


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
    try:
        found = ScimFilter(text).ast if len(text) <= LONGEST else None
    except InvalidFilterException:
        found = None
    if not isinstance(found, Comparison) or found.op != CompareOperator.eq or not isinstance(found.value, str):
        raise InvalidFilter(f'filter: only one comparison is understood, as in: {next(iter(attributes))} eq "value"')
    name = str(found.attr_path).lower().removeprefix(f"{schema.lower()}:")
    if name not in {attribute.lower() for attribute in attributes}:
        raise InvalidFilter(f"filter: cannot search by {name[:100]}, only by {', '.join(attributes)}")
    if not is_storable(found.value):
        raise InvalidFilter("filter: the value has characters that no name can have")
    return Equals(name, found.value)
