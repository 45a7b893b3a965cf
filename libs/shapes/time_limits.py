"""Time limits as people write them: ``90m``, ``12h``, ``1d12h``, or whole seconds.

A text is one or more whole numbers, each with its unit: ``d``, ``h``, ``m`` or ``s``, every unit at most once, the
largest first. A number without a unit is no text but a number: ``5400``, not ``"5400"``.
"""

from __future__ import annotations

import re
from typing import Any, Final

from libs.shapes.shape import MOST_COUNTED, Read, json_type, whole, wrong

EXPECTED: Final = 'must be whole seconds above 0, or a text such as "90m", "12h" or "1d12h"'
_UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_TEXT: Final = re.compile("".join(f"(?:([0-9]{{1,10}}){unit})?" for unit in _UNITS), re.ASCII)


def parse_time_limit(value: object) -> int | None:
    """Seconds from 1 to 2^31 - 1, or None when ``value`` is no time limit."""
    if isinstance(value, str):
        match = _TEXT.fullmatch(value)
        value = None if match is None else _seconds(match)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 1 <= value <= MOST_COUNTED else None


def _seconds(match: re.Match[str]) -> int:
    return sum(int(number or 0) * unit for number, unit in zip(match.groups(), _UNITS.values(), strict=True))


def limit_in_words(seconds: int) -> str:
    """The shortest text that means so many whole seconds: ``1d12h`` for 129600."""
    parts: list[str] = []
    for unit, size in _UNITS.items():
        number, seconds = divmod(seconds, size)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"


def time_limit(value: Any, path: str) -> Read:
    """The shape of a time limit; its normal form is a number of seconds."""
    if json_type(value) in ("integer", "number"):
        return whole(1, MOST_COUNTED)(value, path)
    seconds = parse_time_limit(value)
    return Read(seconds) if seconds is not None else wrong(path, EXPECTED)
