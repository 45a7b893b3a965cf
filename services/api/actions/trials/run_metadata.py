"""Metadata that training code attaches to its run, and the limits it has (docs/reference/experiments.md 13.7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.trials import trials
from libs.errors import InvalidRequest, NotFound

MAX_KEYS: Final = 1000
MAX_DEPTH: Final = 10
MAX_ELEMENTS: Final = 100
MAX_KEY_LENGTH: Final = 50
MAX_VALUE_LENGTH: Final = 5000
FORBIDDEN_IN_KEYS: Final = "$.[]"


def check_metadata(metadata: Mapping[str, Any]) -> None:
    """Raise InvalidRequest when metadata goes beyond a limit; keys are counted on all levels."""
    if _check(metadata, depth=1) > MAX_KEYS:
        raise InvalidRequest(f"request exceeds run metadata key count limit of {MAX_KEYS}")


def _check(value: Any, *, depth: int) -> int:
    """The number of keys in ``value``, which lies ``depth`` levels deep."""
    if isinstance(value, str) and len(value) > MAX_VALUE_LENGTH:
        raise InvalidRequest(f"metadata value exceeds maximum length of {MAX_VALUE_LENGTH} characters")
    if not isinstance(value, Mapping | list):
        return 0
    if depth > MAX_DEPTH:
        raise InvalidRequest(f"metadata exceeds maximum nesting depth of {MAX_DEPTH}")
    if isinstance(value, list):
        if len(value) > MAX_ELEMENTS:
            raise InvalidRequest(f"metadata array exceeds maximum length of {len(value)}/{MAX_ELEMENTS} elements")
        return sum(_check(item, depth=depth + 1) for item in value)
    for key in value:
        _check_key(key)
    return len(value) + sum(_check(item, depth=depth + 1) for item in value.values())


def _check_key(key: str) -> None:
    if len(key) > MAX_KEY_LENGTH:
        raise InvalidRequest(f"metadata key exceeds maximum length of {MAX_KEY_LENGTH} characters")
    if any(character in key for character in FORBIDDEN_IN_KEYS):
        listed = ", ".join(FORBIDDEN_IN_KEYS)
        raise InvalidRequest(f"metadata keys can not contain the following character(s): {listed}")


async def replace_run_metadata(connection: AsyncConnection, run_id: int, metadata: Mapping[str, Any]) -> None:
    """Put ``metadata`` in the place of all the run has. Raises InvalidRequest, NotFound."""
    check_metadata(metadata)
    changed = await connection.execute(update(trials).where(trials.c.id == run_id).values(metadata=dict(metadata)))
    if changed.rowcount == 0:
        raise NotFound("run", run_id)
