"""What the locked path knows of a batch of reports: experiments and trials, locked, and what it makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from libs.errors import ResoluteError
from libs.events.changes import ExperimentChanged, PublicEvent
from services.api.metrics.fast_path import KnownTrial
from services.api.metrics.groups import Kind, group_of_summary
from services.api.metrics.merge import Merged
from services.api.metrics.report import MetricReport
from services.api.metrics.rollback import ReportPosition
from services.api.metrics.rows.append_path import AppendableTrial
from services.api.metrics.rows.summary_rows import GroupRow
from services.api.metrics.summary import TrialSummary
from services.api.metrics.validations import SearchGoal, ValidationStanding


@dataclass(slots=True)
class MeasuredExperiment:
    """``changed`` says to whoever drives its search that there is news for it."""

    id: int
    changed: ExperimentChanged
    is_searching: bool
    goal: SearchGoal
    best_signed: float | None


@dataclass(slots=True)
class MeasuredTrial:
    """A locked trial, and what this batch makes of it.

    summary  empty where it is in rows
    groups   those in whose rows it is; None where it is in a column of the trial
    """

    id: int
    experiment_id: int
    state: str
    run: int
    total_batches: int
    summary: TrialSummary
    standing: ValidationStanding
    restarts: int
    task_id: str
    groups: dict[str, GroupRow] | None = None

    @property
    def reported(self) -> Iterable[str]:
        """The groups that it has reports of."""
        return map(group_of_summary, self.summary) if self.groups is None else self.groups

    @property
    def count_of_names(self) -> int:
        """How many metrics its summary has in the column."""
        return sum(map(len, self.summary.values()))


@dataclass(slots=True)
class PendingWrite:
    """What one accepted report writes."""

    report: MetricReport
    trial: MeasuredTrial
    position: ReportPosition
    merged: Merged | None = None

    @property
    def metrics(self) -> Mapping[str, Any]:
        """All metrics of the row after it."""
        return self.report.measured.avg if self.merged is None else self.merged.whole.avg

    @property
    def moves_standing(self) -> bool:
        return self.report.kind is Kind.VALIDATION or any(row.kind is Kind.VALIDATION for row in self.position.back)


@dataclass(slots=True)
class BatchOutcome:
    """What became of a batch.

    errors   by position in the batch, None for a report that is stored
    events   to announce with it
    written  trials by id, as they are once the transaction has committed
    in_rows  those of them whose next reports may be appended
    """

    errors: list[ResoluteError | None]
    events: list[PublicEvent] = field(default_factory=list)
    written: dict[int, KnownTrial] = field(default_factory=dict)
    in_rows: dict[int, AppendableTrial] = field(default_factory=dict)
