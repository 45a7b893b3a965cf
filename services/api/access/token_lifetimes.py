"""Lifetime of an access token: what its owner asked for, within what the administrator allows. Pure.

Source: docs/reference/platform.md 2.4. Durations are written as in Go: ``720h``, ``1h30m``; -1 asks for the longest.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

from libs.cluster.config import TokenConfig
from libs.errors import InvalidRequest

UNLIMITED_DAYS: Final = 106_751
"""What the reference stores for unlimited: the longest duration that Go knows."""
LONGEST: Final = "-1"

_UNIT_S: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)(ns|us|µs|ms|s|m|h)", re.ASCII)


def lifespan(asked: str, limits: TokenConfig) -> timedelta:
    """The time a new token lives. Raises InvalidRequest for a text that is no duration, or too long a one."""
    longest = _days(limits.max_lifespan_days)
    if asked == "":
        return min(_days(limits.default_lifespan_days), longest)
    if asked == LONGEST:
        return longest
    wanted = _duration(asked)
    if wanted > longest:
        raise InvalidRequest("token Lifespan must be less than max token lifespan")
    return wanted


def _days(number: int) -> timedelta:
    return timedelta(days=UNLIMITED_DAYS if number < 0 else number)


def _duration(text: str) -> timedelta:
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise InvalidRequest("lifespan: expected a duration such as 720h, or -1 for the longest there is")
    seconds = sum(float(number) * _UNIT_S[unit] for number, unit in parts)
    if not 0 < seconds <= UNLIMITED_DAYS * 86_400:
        raise InvalidRequest("lifespan: must be positive, and less than max token lifespan")
    return timedelta(seconds=seconds)
