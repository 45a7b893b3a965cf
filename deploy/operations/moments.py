"""Instants of replies, for people."""

from __future__ import annotations

from datetime import datetime


def in_this_zone(moment: str) -> str:
    """An instant in RFC 3339, as this machine's clock shows it, to the minute."""
    return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M %Z")
