"""Reads a point in time that somebody typed."""

from __future__ import annotations

from datetime import UTC, datetime


def parse_instant(text: str) -> datetime:
    """ISO 8601, in UTC where it names no zone; returned in UTC. Raises ValueError with the form that is expected."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"must be a time as in 2026-01-31T12:00:00Z, not {text[:50]!r}") from error
