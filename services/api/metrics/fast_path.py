"""The fast path, for what training code nearly always sends: a report beyond all steps its trial has reported so far.

Such a report meets no other row and no search, so all it needs is the trial as it was after the last one. That is
remembered, with the version of its row, and the report is written by one statement that does nothing when the row has
changed since, or is being changed, whoever does it. What is not written this way takes the locked path
(``locked_path.py``), where locks and rows decide; both leave the same rows for the same reports. The version of a row
is its ``xmin`` (PostgreSQL manual, 5.6 System Columns): every update changes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import Struct

from libs.db.outbox import event_message
from libs.events.changes import PublicEvent, TrialChanged
from services.api.metrics.announcements import report_event
from services.api.metrics.groups import Kind, summary_key
from services.api.metrics.report import MetricReport
from services.api.metrics.statements import STORE_NEWEST, STORE_NEWEST_AND_ENQUEUE
from services.api.metrics.summary import TrialSummary, fold

_MOST_KNOWN: Final = 5_000


class KnownTrial(Struct):
    """A trial as its row was at ``version``."""

    experiment_id: int
    state: str
    run: int
    total_batches: int
    summary: TrialSummary
    restarts: int
    task_id: str
    version: int


class _NewestReport(Struct):
    """What the statement takes of a report."""

    trial_id: int
    version: int
    run: int
    metric_group: str
    kind: Kind
    step: int
    end_time: datetime
    document: msgspec.Raw
    summary: TrialSummary


class KnownTrials:
    """What the writer remembers. Entries are taken out while they change: a failure leaves none half changed, and what
    comes meanwhile for the same trial takes the locked path."""

    def __init__(self) -> None:
        self._known: dict[int, KnownTrial] = {}

    def covers(self, report: MetricReport) -> bool:
        """Whether a report can take the fast path."""
        known = self._known.get(report.trial_id)
        return (
            known is not None
            and report.kind is not Kind.VALIDATION
            and report.step is not None
            and report.step > known.total_batches
            and report.run == known.run
        )

    def remember(self, trials: Mapping[int, KnownTrial]) -> None:
        """Remember trials as a committed transaction has left them."""
        self._known.update(trials)
        while len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def forget(self, trial_ids: Iterable[int]) -> None:
        for trial_id in trial_ids:
            self._known.pop(trial_id, None)

    def prepare(self, reports: Sequence[MetricReport]) -> PreparedReports:
        """Count reports that are covered, of different trials, in."""
        prepared = PreparedReports({}, [], [])
        for report in reports:
            trial = self._known.pop(report.trial_id)
            assert report.step is not None
            fold(trial.summary.setdefault(summary_key(report.group), {}), report.measured.avg, newest=True)
            trial.total_batches = report.step
            prepared.trials[report.trial_id] = trial
            prepared.rows.append(
                _NewestReport(
                    report.trial_id,
                    trial.version,
                    report.run,
                    report.group,
                    report.kind,
                    report.step,
                    report.end_time,
                    msgspec.Raw(report.document.encode()),
                    trial.summary,
                )
            )
            prepared.events.append(report_event(report.trial_id, trial, report.group, report.step))
        return prepared


class PreparedReports(Struct):
    """Reports that are ready to be written, their trials as they will be then, and what may be announced."""

    trials: dict[int, KnownTrial]
    rows: list[_NewestReport]
    events: list[TrialChanged]


async def store_fast(driver: Any, prepared: PreparedReports, events: Sequence[PublicEvent]) -> dict[int, KnownTrial]:
    """Write prepared reports and ``events`` with an asyncpg connection, in one statement that commits by itself.

    Returns the trials whose reports were written; the rows of the others have changed or are locked, and nothing of
    them is written.
    """
    rows = msgspec.json.encode(prepared.rows).decode()
    trial_ids = list(prepared.trials)
    if events:
        messages = [event_message(event) for event in events]
        written = await driver.fetch(
            STORE_NEWEST_AND_ENQUEUE,
            rows,
            trial_ids,
            [message["subject"] for message in messages],
            [msgspec.json.encode(message["headers"]).decode() for message in messages],
            [message["payload"] for message in messages],
        )
    else:
        written = await driver.fetch(STORE_NEWEST, rows, trial_ids)
    trials = {}
    for trial_id, version in written:
        trial = trials[trial_id] = prepared.trials[trial_id]
        trial.version = version
    return trials
