"""Names that those who run experiments elsewhere give to them and to their trials."""

from __future__ import annotations

from typing import Final

from libs.errors import InvalidRequest

LONGEST: Final = 512
"""Characters; the names are keys of an index."""


def check_external_id(field: str, value: str) -> None:
    """Raise InvalidRequest unless it can be a name."""
    if not value.strip():
        raise InvalidRequest(f"{field}: expected a name that is not empty")
    if len(value) > LONGEST:
        raise InvalidRequest(f"{field}: expected at most {LONGEST} characters, got {len(value)}")
