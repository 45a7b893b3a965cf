"""Random histories of one trial: reports in and out of order, repeated, in parts, of runs that are over, and restarts.

What happens at once is drawn so that its order does not matter: reports of one run, no two of the same group and step.
Sums of the values are exact in any order. A history is drawn before it begins, so that its seed alone repeats it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.integration.api.metrics.reference import Report

START: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
GROUPS: Final = ("training", "training", "training", "validation", "custom", "other")
NAMES: Final = ("loss", "accuracy", "of.layer", "odd name", "Ünicode")
WORDS: Final = ("NaN", "Infinity", "-Infinity")
OTHERS: Final = ("text", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.25+01:00", None, True, {"deep": [1, None]}, [2])


@dataclass(frozen=True)
class AtOnce:
    """Reports that are sent together, each by way of one of two replicas.

    cut   after how many seconds the connections of the replicas end; None: they do not
    """

    reports: list[tuple[int, Report]]
    cut: float | None = None


@dataclass(frozen=True)
class Restart:
    """The trial begins its next run. ``late`` are reports of the one before that are under way meanwhile, ``early`` the
    first of the next one, sent at once."""

    late: list[tuple[int, Report]]
    early: list[tuple[int, Report]]


Happening = AtOnce | Restart


class _Drawing:
    def __init__(self, chance: random.Random, length: int) -> None:
        self.chance = chance
        self.length = length
        self.run = 1
        self.step = 0
        self.sent: list[Report] = []
        self.clock = 0
        self.numeric = chance.random() < 0.6

    def happenings(self) -> Iterator[Happening]:
        for _ in range(self.length):
            drawn = self.chance.random()
            if drawn < 0.1:
                yield self._restart()
            elif drawn < 0.2:
                yield AtOnce(self._several(self.chance.randint(2, 6)), self._cut(0.25))
            elif drawn < 0.28 and self.sent:
                repeated = self.chance.choice(self.sent[-6:])
                yield AtOnce([(self._replica(), repeated)], self._cut(0.1))
            elif drawn < 0.34 and self.run > 1:
                stale = self._report(self.run - 1)
                yield AtOnce([(self._replica(), stale)], self._cut(0.1))
            elif drawn < 0.38:
                yield AtOnce([(self._replica(), self._profiling())])
            else:
                yield AtOnce([(self._replica(), self._report(self.run))], self._cut(0.1))

    def _restart(self) -> Restart:
        late = self._several(self.chance.randint(0, 3))
        self.run += 1
        back = self.chance.randint(0, 6)
        self.step = max(0, self.step - back)
        return Restart(late, [(self._replica(), self._report(self.run))] if self.chance.random() < 0.7 else [])

    def _several(self, count: int) -> list[tuple[int, Report]]:
        reports = {(report.group, report.step): report for report in (self._report(self.run) for _ in range(count))}
        return [(self._replica(), report) for report in reports.values()]

    def _report(self, run: int) -> Report:
        ahead = self.chance.choice([1, 1, 1, 1, 1, 2, 0, -1, -3])
        step = max(0, self.step + ahead)
        if run == self.run:
            self.step = max(self.step, step)
        names = self.chance.sample(NAMES, self.chance.choice([0, 1, 1, 2, 3]))
        report = Report(
            run=run,
            group=self.chance.choice(GROUPS),
            step=step,
            time=self._time(),
            avg={name: self._value() for name in names},
            batches=[{"loss": 0.5}] if self.chance.random() < 0.1 else None,
        )
        if run == self.run:
            self.sent.append(report)
        return report

    def _profiling(self) -> Report:
        sample = {"node": {"gpu-1": {"gpu_util": self.chance.randint(0, 100)}}}
        return Report(run=self.run, group="gpu", step=None, time=self._time(), avg=sample)

    def _value(self) -> Any:
        drawn = self.chance.random()
        if drawn < 0.55 or (self.numeric and drawn < 0.95):
            return self.chance.choice([self.chance.randint(-5, 5), self.chance.randint(-80, 80) / 8])
        return self.chance.choice(WORDS if self.numeric or drawn < 0.65 else OTHERS)

    def _time(self) -> datetime:
        self.clock += 1
        return START + timedelta(seconds=self.clock)

    def _replica(self) -> int:
        return self.chance.randint(0, 1)

    def _cut(self, likely: float) -> float | None:
        return self.chance.random() * 0.008 if self.chance.random() < likely else None


def history(seed: int, *, length: int = 24) -> list[Happening]:
    """The history that ``seed`` stands for."""
    return list(_Drawing(random.Random(seed), length).happenings())
