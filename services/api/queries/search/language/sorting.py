"""The sort parameter of searches: ``column=asc,other=desc``. Pure. Source: docs/reference/platform.md 9.2."""

from __future__ import annotations

from typing import Final, NamedTuple

from libs.errors import InvalidRequest

MOST_COLUMNS: Final = 50


class SortKey(NamedTuple):
    column: str
    descending: bool


def parse_sort(text: str) -> list[SortKey]:
    """The columns to sort by, the most important first; none of an empty text. Raises InvalidRequest."""
    parts = text.split(",") if text else []
    if len(parts) > MOST_COLUMNS:
        raise InvalidRequest(f"invalid sort parameter: more than {MOST_COLUMNS} columns")
    return [_key(part) for part in parts]


def _key(part: str) -> SortKey:
    # Names of metrics may contain the sign, directions do not.
    column, sign, direction = part.rpartition("=")
    if not sign or not column:
        raise InvalidRequest(f"invalid sort parameter: {part[:200]}")
    if direction not in ("asc", "desc"):
        raise InvalidRequest(f"invalid sort direction: {direction[:200]}")
    return SortKey(column, direction == "desc")
