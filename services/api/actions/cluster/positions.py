"""Positions of jobs that are moved in a queue: between two neighbours, and when there is no room left between them, as
many of those around are spread out anew as it takes. Pure.

Only the order of positions means something. Those at the ends are given with care all the same: a job that is moved
behind all others stands where one would that is submitted now, so what is submitted later is behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from libs.job_rank import MICROSECOND

AHEAD: Final = 1_000_000 * MICROSECOND
"""How far ahead of the first job, or of each other, are those that are moved there: a second."""
_SPARE: Final = 10**6
"""Units between positions that were spread out, so that about twenty moves to one place follow before the next time."""


class Insertion(Struct, frozen=True):
    position: int
    """Of the job that is moved."""
    others: dict[int, int]
    """New positions of some others, by their index in the line."""


def insert_at(line: Sequence[int], index: int, *, now: int) -> Insertion:
    """Put a job before ``line[index]``, or behind all when there is no such one.

    line  positions of the other jobs in the order of the queue; neighbours may have the same
    now   the position of a job that would be submitted now
    """
    size = 1
    while True:
        first, end = max(index - size, 0), min(index + size, len(line))
        around = _spread(line, first, end, index, now=now) if size > 1 else _between(line, index, now=now)
        if around is not None:
            return around
        size *= 2


def _between(line: Sequence[int], index: int, *, now: int) -> Insertion | None:
    if index == len(line):
        return Insertion(max(now, line[-1] + MICROSECOND) if line else now, {})
    if index == 0:
        return Insertion(line[0] - AHEAD, {})
    low, high = line[index - 1], line[index]
    return Insertion((low + high) // 2, {}) if high - low > 1 else None


def _spread(line: Sequence[int], first: int, end: int, index: int, *, now: int) -> Insertion | None:
    """Spread out ``line[first:end]`` and the new one between those before and behind them, if they are far enough
    apart; at the ends of the line there is room."""
    count = end - first + 1
    low = line[first - 1] if first else line[0] - count * AHEAD
    high = line[end] if end < len(line) else max(now, line[-1] + count * MICROSECOND)
    step = (high - low) // (count + 1)
    if step < _SPARE:
        return None
    at = [low + step * number for number in range(1, count + 1)]
    new = at.pop(index - first)
    return Insertion(new, {first + offset: position for offset, position in enumerate(at)})
