"""Times as Kubernetes writes them: RFC 3339."""

from __future__ import annotations

from datetime import datetime


def unix_s(text: str | None) -> float | None:
    """Seconds since 1970; None where no time is given."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
