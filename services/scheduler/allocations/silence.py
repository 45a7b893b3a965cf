"""Of which allocations nothing was heard for long. Pure.

A task that trains for days is silent, and so is one whose end was said and not heard; only its launcher can tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf


class Silence:
    """after_s  seconds without anything new, after which an allocation counts as silent"""

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._heard: dict[str, tuple[int, float]] = {}
        """Allocation -> revision heard last, and when that or an answer came."""
        self._in_doubt = True

    def doubt(self) -> None:
        """Take all as silent until each was asked about."""
        self._in_doubt = True

    def silent(self, revisions: Mapping[str, int], now: float) -> list[str]:
        """Those to ask about.

        revisions  of all that live, as heard last
        now        seconds of a clock that only goes forward
        """
        before, self._heard = self._heard, {}
        for allocation, revision in revisions.items():
            known = before.get(allocation)
            if self._in_doubt:
                known = (revision, -inf)
            elif known is None or known[0] != revision:
                known = (revision, now)
            self._heard[allocation] = known
        self._in_doubt = False
        return [allocation for allocation, (_, since) in self._heard.items() if now - since >= self._after_s]

    def asked(self, allocation: str, now: float) -> None:
        """Its launcher knows what was heard, and says the rest by itself."""
        revision, _ = self._heard[allocation]
        self._heard[allocation] = (revision, now)
