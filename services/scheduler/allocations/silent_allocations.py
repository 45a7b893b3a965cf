"""Finds allocations of which nothing was observed for long. Pure.

A task that trains for days is silent, and so is one whose end was said and not heard; only its launcher can tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf


class SilentAllocations:
    """after_s  seconds without anything new, after which an allocation counts as silent"""

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._heard: dict[str, tuple[int, float]] = {}
        """Allocation -> revision heard last, and when that or an answer came."""
        self._all_assumed = True

    def assume_all(self) -> None:
        """Take all as silent until their launchers have answered."""
        self._all_assumed = True

    def since_long(self, revisions: Mapping[str, int], now: float) -> list[str]:
        """Those to ask about.

        revisions  of all that live, as heard last
        now        seconds of a clock that only goes forward
        """
        before, self._heard = self._heard, {}
        for allocation, revision in revisions.items():
            known = before.get(allocation)
            if self._all_assumed:
                known = (revision, -inf)
            elif known is None or known[0] != revision:
                known = (revision, now)
            self._heard[allocation] = known
        self._all_assumed = False
        return [allocation for allocation, (_, since) in self._heard.items() if now - since >= self._after_s]

    def answered(self, allocation: str, now: float) -> None:
        """Its launcher knows what was heard, and reports the rest by itself."""
        revision, _ = self._heard[allocation]
        self._heard[allocation] = (revision, now)
