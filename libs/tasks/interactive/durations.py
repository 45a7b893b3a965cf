"""Durations as Go writes them, which is how people write time-outs: ``10m``, ``1h30m``, ``1.5h``, ``250ms``.

Source: docs/reference/tasks-and-cli.md 2.4 (idle_timeout); https://pkg.go.dev/time#ParseDuration.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

from libs.shapes.shape import Read, expected, wrong

_NANOS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE: Final = re.compile(rf"[-+]?(0|({_PART.pattern})+)", re.ASCII)
_LONGEST: Final = 100
_MOST_NANOS: Final = 2**63 - 1


def parse_duration(text: str) -> int | None:
    """Nanoseconds, or None when ``text`` is no duration, or one of more than 292 years."""
    if len(text) > _LONGEST or _WHOLE.fullmatch(text) is None:
        return None
    nanos = int(sum(Decimal(amount) * _NANOS[unit] for amount, unit in _PART.findall(text)))
    return None if nanos > _MOST_NANOS else -nanos if text.startswith("-") else nanos


def format_duration(nanos: int) -> str:
    """The one way in which Go writes it: ``10m0s``, ``1h30m0s``, ``1.5s``, ``250ms``, ``0s``."""
    sign, rest = ("-", -nanos) if nanos < 0 else ("", nanos)
    if rest < _NANOS["s"]:
        unit = next((unit for unit in ("ms", "µs") if rest >= _NANOS[unit]), "ns" if rest else "s")
        return f"{sign}{_decimal(rest, _NANOS[unit])}{unit}"
    minutes, seconds = divmod(rest, _NANOS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(seconds, _NANOS['s'])}s"
    if minutes or hours:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def duration(value: Any, path: str) -> Read:
    """The shape of a duration; its normal form is that of ``format_duration``."""
    if not isinstance(value, str):
        return expected("string", value, path)
    nanos = parse_duration(value)
    if nanos is None:
        return wrong(path, f'invalid duration "{value[:_LONGEST]}", expected something like "10m" or "1h30m"')
    return Read(format_duration(nanos))


def duration_seconds(text: str) -> float:
    """Seconds of a duration in normal form. Raises ValueError for what is none."""
    nanos = parse_duration(text)
    if nanos is None:
        raise ValueError(text)
    return nanos / 10**9


def _decimal(amount: int, unit: int) -> str:
    whole, fraction = divmod(amount, unit)
    digits = f"{fraction:0{len(str(unit)) - 1}d}".rstrip("0") if fraction else ""
    return f"{whole}.{digits}" if digits else str(whole)
