"""How output looks to people: durations in their words, and colours where a terminal shows them.

Source: https://no-color.org.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TextIO

Colour = Literal["red", "yellow", "green", "bold", "dim"]
_CODES: Final[Mapping[Colour, str]] = {"red": "31", "yellow": "33", "green": "32", "bold": "1", "dim": "2"}
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR


def colours(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether colours may be written: to a terminal that has them, unless ``NO_COLOR`` is set."""
    return stream.isatty() and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"


def paint(text: str, colour: Colour, *, coloured: bool) -> str:
    """``text`` in a colour, or as it is."""
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if coloured else text


def in_columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """A table as lines; its columns are as wide as the widest cell."""
    table = [*rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def duration(seconds: float) -> str:
    """Two units at most, rounded down: ``8 s``, ``12 min``, ``3 h 5 min``, ``4 d 20 h``."""
    whole = max(int(seconds), 0)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    if whole < _DAY:
        return _both(whole, _HOUR, "h", _MINUTE, "min")
    return _both(whole, _DAY, "d", _HOUR, "h")


def _both(seconds: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large} {large_unit}" + (f" {rest} {small_unit}" if rest else "")


def in_a_line(value: Any) -> str:
    """Text as it is where it is one word that can be printed, anything else as JSON without line breaks."""
    if isinstance(value, str) and value.isprintable() and not any(each in value for each in " \"'"):
        return value
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text if text.isprintable() else json.dumps(value, separators=(",", ":"), default=str)
