"""How long allocations are expected to run: as long as those before them, and no longer than was declared.

The expectation is the median of past runs: those of the same user, kind of task and size; of the same user and kind;
of the same pool and kind; each where there have been enough. An allocation that outlives it is expected to run twice as
long as was thought, as often as that is needed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, Literal

from msgspec import Struct

ENOUGH: Final = 3
"""Runs that make a median worth more than a wider one."""
SIZES: Final = (1, 2, 3, 5, 9, 17, 33, 65, 129, 257, 513, 1025)
"""Slots with which classes of sizes begin, below which is that of tasks without slots."""

Knowledge = Literal["declared", "user", "pool", "nothing"]
"""Where an expectation comes from."""
IN_WORDS: Final[Mapping[Knowledge, str]] = {
    "declared": "by its time limit",
    "user": "by what its user ran before",
    "pool": "by what the pool ran before",
    "nothing": "by default, as nothing like it has run before",
}


class RunKind(Struct, frozen=True):
    """What the length of a run is expected to depend on."""

    owner: int
    task_type: str
    pool: str
    slots: int

    @property
    def size(self) -> int:
        """Class of sizes."""
        return size_of(self.slots)


class ExpectedRun(Struct, frozen=True):
    length: timedelta
    known_from: Knowledge


class PastRuns(Struct, frozen=True, kw_only=True):
    """Medians of past runs, each with how many there were."""

    by_size: Mapping[tuple[int, str, int], tuple[timedelta, int]] = {}
    """Of owner, type of task and class of sizes."""
    by_owner: Mapping[tuple[int, str], tuple[timedelta, int]] = {}
    by_pool: Mapping[tuple[str, str], tuple[timedelta, int]] = {}
    otherwise: timedelta = timedelta(hours=1)

    def expect(self, kind: RunKind, declared: timedelta | None = None) -> ExpectedRun:
        """declared  how long it may run at most"""
        found = self._median(kind)
        if declared is not None and (found is None or declared <= found.length):
            return ExpectedRun(declared, "declared")
        return found or ExpectedRun(self.otherwise, "nothing")

    def _median(self, kind: RunKind) -> ExpectedRun | None:
        candidates: tuple[tuple[tuple[timedelta, int] | None, Knowledge], ...] = (
            (self.by_size.get((kind.owner, kind.task_type, kind.size)), "user"),
            (self.by_owner.get((kind.owner, kind.task_type)), "user"),
            (self.by_pool.get((kind.pool, kind.task_type)), "pool"),
        )
        for found, known_from in candidates:
            if found is not None and found[1] >= ENOUGH:
                return ExpectedRun(max(found[0], timedelta(seconds=1)), known_from)
        return None


NOTHING_RAN: Final = PastRuns()
"""Nothing is known of runs."""


def size_of(slots: int) -> int:
    return bisect_right(SIZES, slots)


def expected_end(started_at: datetime, expected: timedelta, now: datetime) -> datetime:
    """When a run that began, or begins, at ``started_at`` is expected to end; always later than ``now``."""
    while started_at + expected <= now:
        expected *= 2
    return started_at + expected
