"""Reference for the metrics of a trial: slow, plain, and independent of the code of the services.

It keeps every report as a row and derives everything else from the rows that survive, from scratch, whenever it is
asked. Source: docs/reference/experiments.md 9.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

WORDS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
SUMMARY_KEYS: Final = {"training": "avg_metrics", "validation": "validation_metrics"}
PROFILING: Final = ("gpu", "cpu", "memory", "disk", "network")
_DATE: Final = re.compile(r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})?$", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Report:
    """What training code sends; ``step`` is None for profiling."""

    run: int
    group: str
    step: int | None
    time: datetime
    avg: dict[str, Any]
    batches: list[Any] | None = None


@dataclass(kw_only=True)
class Row:
    """What is stored of a report, or of several of one step."""

    run: int
    group: str
    step: int | None
    time: datetime
    avg: dict[str, Any]
    batches: list[Any] | None
    archived: bool = False

    @property
    def kind(self) -> str:
        return kind_of(self.group)

    @property
    def document(self) -> dict[str, Any]:
        if self.kind == "PROFILING":
            return self.avg
        if self.kind == "VALIDATION":
            return {"validation_metrics": self.avg}
        return {"avg_metrics": self.avg, "batch_metrics": self.batches or None}


def kind_of(group: str) -> str:
    if group in PROFILING:
        return "PROFILING"
    return {"training": "TRAINING", "validation": "VALIDATION"}.get(group, "GENERIC")


@dataclass
class ReferenceTrial:
    """One trial of a search for the smallest ``goal``.

    told  the validations that its search has heard of
    """

    goal: str = "loss"
    run: int = 1
    rows: list[Row] = field(default_factory=list)
    told: list[dict[str, Any]] = field(default_factory=list)

    def restart(self) -> None:
        self.run += 1

    def report(self, report: Report) -> str | None:
        """Take a report; returns why it is refused, or None."""
        if report.run != self.run:
            return f"invalid run id, {report.run} (reported) != {self.run} (expected): invalid arguments"
        kind = kind_of(report.group)
        new = Row(
            run=report.run,
            group=report.group,
            step=report.step,
            time=report.time,
            avg=dict(report.avg),
            # Batch metrics of validations are not stored.
            batches=None if kind == "VALIDATION" else report.batches or None,
        )
        if kind == "PROFILING":
            if not any(
                (row.group, row.time, row.avg) == (new.group, new.time, new.avg) and row.kind == kind
                for row in self.rows
            ):
                self.rows.append(new)
            return None
        assert report.step is not None
        back = [
            row
            for row in self.surviving()
            if row.run < report.run
            and row.step is not None
            and (row.step > report.step or (row.kind == kind and row.step == report.step))
        ]
        same = [
            row
            for row in self.surviving(report.group)
            if row.step == report.step and not any(row is gone for gone in back)
        ]
        if not same:
            self._archive(back)
            self.rows.append(new)
            self._tell(new)
            return None
        (old,) = same
        for name, value in new.avg.items():
            if name in old.avg and old.avg[name] != value:
                return f"overwriting existing metric keys is not supported, conflicting key: {name}"
        if old.batches and new.batches and old.batches != new.batches:
            return "overwriting batch metrics is not supported"
        added = {name: value for name, value in new.avg.items() if name not in old.avg}
        if added or back or (new.batches and not old.batches):
            self._archive(back)
            old.avg = {**old.avg, **added}
            old.batches = old.batches or new.batches
            # A step that is reported in parts is news to the search when the part with its metric comes.
            if self.goal in added:
                self._tell(old)
        return None

    def _archive(self, rows: Iterable[Row]) -> None:
        for row in rows:
            row.archived = True

    def _tell(self, row: Row) -> None:
        if row.kind == "VALIDATION":
            self.told.append(dict(row.avg))

    def surviving(self, group: str | None = None) -> list[Row]:
        """The rows that were not taken back, by step; without profiling."""
        rows = [row for row in self.rows if not row.archived and row.kind != "PROFILING"]
        return sorted((row for row in rows if group in (None, row.group)), key=_step)

    @property
    def total_batches(self) -> int:
        return max((_step(row) for row in self.surviving()), default=0)

    @property
    def summary(self) -> dict[str, dict[str, dict[str, Any]]]:
        """By key of the summary and by metric. A group stays after all its rows were taken back."""
        groups = {row.group for row in self.rows if row.kind != "PROFILING"}
        return {SUMMARY_KEYS.get(group, group): summarise(self.surviving(group)) for group in groups}

    @property
    def latest_validation(self) -> Row | None:
        return next((row for row in reversed(self.surviving("validation")) if self.goal in row.avg), None)

    @property
    def best_validation(self) -> Row | None:
        """The first of the smallest; NaN is greater than all numbers."""
        scored = [(row, number_in(row.avg.get(self.goal))) for row in self.surviving("validation")]
        ranked = [(math.isnan(value), value, row) for row, value in scored if value is not None]
        best: tuple[bool, float, Row] | None = None
        for candidate in ranked:
            if best is None or candidate[0] < best[0] or (candidate[0] == best[0] and candidate[1] < best[1]):
                best = candidate
        return None if best is None else best[2]


def _step(row: Row) -> int:
    assert row.step is not None
    return row.step


def summarise(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """The summary of one group, whose rows come by step."""
    names = {name: None for row in rows for name in row.avg}
    found = {}
    for name in names:
        values = [row.avg[name] for row in rows if name in row.avg]
        types = {type_of(value) for value in values}
        summary: dict[str, Any] = {"type": types.pop() if len(types) == 1 else "string"}
        if summary["type"] == "number":
            numbers = [number for value in values if (number := number_in(value)) is not None]
            is_spoilt = any(math.isnan(number) for number in numbers)
            total = 0.0
            for number in numbers:
                total += number
            summary |= {
                "count": len(numbers),
                "sum": wire(total),
                "min": wire(math.nan if is_spoilt else min(numbers)),
                "max": wire(math.nan if is_spoilt else max(numbers)),
                "mean": wire(total / len(numbers)),
            }
        last = rows[-1].avg.get(name)
        if last is not None:
            summary["last"] = last
        found[name] = summary
    return found


def type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float) or (isinstance(value, str) and value in WORDS):
        return "number"
    if isinstance(value, str):
        return "date" if _DATE.match(value) else "string"
    return "array" if isinstance(value, list) else "object"


def number_in(value: Any) -> float | None:
    if isinstance(value, str):
        return WORDS.get(value)
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


def wire(value: float) -> float | str:
    """As JSON has it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
