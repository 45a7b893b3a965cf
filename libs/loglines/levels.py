"""Log levels: bare names are stored, ``LOG_LEVEL_<name>`` or a number goes over the wire
(docs/reference/logs.md 1.2)."""

from __future__ import annotations

from typing import Final

LEVELS: Final = ("UNSPECIFIED", "TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
"""By wire number; later is more severe."""
WIRE_PREFIX: Final = "LOG_LEVEL_"


def level_of(value: object) -> str | None:
    """The bare name behind any spelling a client uses: ``LOG_LEVEL_INFO``, ``INFO`` or 3.

    None for what is no level, and for UNSPECIFIED: a line that says so has none.
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < len(LEVELS):
        return LEVELS[value]
    if isinstance(value, str):
        name = value.removeprefix(WIRE_PREFIX)
        return name if name in LEVELS[1:] else None
    return None


def wire_level(level: str | None) -> str:
    """The name that goes over the wire; what is unknown or absent is ``LOG_LEVEL_UNSPECIFIED``."""
    return WIRE_PREFIX + (level if level in LEVELS else LEVELS[0])
