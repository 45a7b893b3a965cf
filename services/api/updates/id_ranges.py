"""Sets of ids as ranges: what a subscriber knows takes little room, and is as short when it is sent. Pure.

UpdateSource: docs/reference/platform.md 16.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from libs.errors import InvalidRequest

LARGEST: Final = 2**63 - 1
_RANGE: Final = re.compile(r"([0-9]{1,19})(?:-([0-9]{1,19}))?", re.ASCII)


class IdRanges:
    """A set of ids. Ranges are kept in order, and never touch."""

    __slots__ = ("_first", "_last")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        """``ranges`` first and last ids, ascending and apart from each other."""
        self._first, self._last = array("q"), array("q")
        for first, last in ranges:
            self._append(first, last)

    @classmethod
    def of(cls, ids: Iterable[int]) -> IdRanges:
        """Of ids in ascending order."""
        return cls((ident, ident) for ident in ids)

    @classmethod
    def parse(cls, field: str, text: str) -> IdRanges:
        """From ``1-3,7``. Raises InvalidRequest, which names the field."""
        found = cls()
        for part in text.split(",") if text else ():
            match = _RANGE.fullmatch(part)
            if match is None:
                raise InvalidRequest(f"{field}: {part[:40]!r} is no range of ids like 1-3 or 7")
            first = int(match[1])
            last = first if match[2] is None else int(match[2])
            if last > LARGEST or last < first or (found._last and first <= found._last[-1]):
                raise InvalidRequest(f"{field}: {part!r} is out of order; ids ascend, as in 1-3,7")
            found._append(first, last)
        return found

    def __contains__(self, ident: int) -> bool:
        at = bisect_right(self._first, ident) - 1
        return at >= 0 and ident <= self._last[at]

    def __bool__(self) -> bool:
        return bool(self._first)

    def __str__(self) -> str:
        return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in self.ranges())

    def ranges(self) -> Iterator[tuple[int, int]]:
        return zip(self._first, self._last, strict=True)

    def add(self, ident: int) -> None:
        at = bisect_right(self._first, ident)
        if at and ident <= self._last[at - 1]:
            return
        follows = bool(at) and self._last[at - 1] + 1 == ident
        precedes = at < len(self._first) and self._first[at] - 1 == ident
        if follows and precedes:
            self._last[at - 1] = self._last[at]
            del self._first[at], self._last[at]
        elif follows:
            self._last[at - 1] = ident
        elif precedes:
            self._first[at] = ident
        else:
            self._first.insert(at, ident)
            self._last.insert(at, ident)

    def discard(self, ident: int) -> None:
        at = bisect_right(self._first, ident) - 1
        if at < 0 or ident > self._last[at]:
            return
        first, last = self._first[at], self._last[at]
        if first == last:
            del self._first[at], self._last[at]
        elif ident == first:
            self._first[at] += 1
        elif ident == last:
            self._last[at] -= 1
        else:
            self._last[at] = ident - 1
            self._first.insert(at + 1, ident + 1)
            self._last.insert(at + 1, last)

    def without(self, others: IdRanges) -> IdRanges:
        """What is in here and not in the others; the cost does not grow with how long the ranges are."""
        left = IdRanges()
        cuts = list(others.ranges())
        at = 0
        for first, last in self.ranges():
            while at < len(cuts) and cuts[at][1] < first:
                at += 1
            each, start = at, first
            while start <= last and each < len(cuts) and cuts[each][0] <= last:
                if cuts[each][0] > start:
                    left._append(start, cuts[each][0] - 1)
                start = cuts[each][1] + 1
                each += 1
            if start <= last:
                left._append(start, last)
        return left

    def _append(self, first: int, last: int) -> None:
        if self._last and self._last[-1] + 1 == first:
            self._last[-1] = last
        else:
            self._first.append(first)
            self._last.append(last)
