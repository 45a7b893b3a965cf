"""The append path, for trials whose summary is in rows: a report beyond all others of its group is an inserted row.

It touches no row that another report touches, so any number of replicas append to one trial at once. The function
``append_reports`` of the database looks whether the trial is what is remembered of it, and inserts nothing else; what
is not appended takes the locked path. The run of the trial has a report of the group by then, so those that earlier
runs left lie before it, and nothing is taken back.
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
from services.api.metrics.groups import Kind
from services.api.metrics.report import MetricReport
from services.api.metrics.rows.statements import APPEND

_MOST_KNOWN: Final = 5_000


class AppendableTrial(Struct):
    """A trial as it was when a report of it was stored; ``newest``: the last step of each group, as far as known."""

    experiment_id: int
    state: str
    run: int
    restarts: int
    task_id: str
    newest: dict[str, int]


class _Appended(Struct):
    """What the function takes of a report."""

    trial_id: int
    run: int
    state: str
    restarts: int
    metric_group: str
    kind: Kind
    step: int
    end_time: datetime
    document: msgspec.Raw


class AppendableTrials:
    """What the writer remembers of them."""

    def __init__(self) -> None:
        self._known: dict[int, AppendableTrial] = {}

    def covers(self, report: MetricReport) -> bool:
        """Whether a report can take the append path. Validations change more than their summary."""
        known = self._known.get(report.trial_id)
        return (
            known is not None
            and report.kind is not Kind.VALIDATION
            and report.step is not None
            and report.run == known.run
            and report.step > known.newest.get(report.group, report.step)
        )

    def remember(self, trials: Mapping[int, AppendableTrial]) -> None:
        """Remember trials as a committed transaction has left them."""
        self._known.update(trials)
        while len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]

    def forget(self, trial_ids: Iterable[int]) -> None:
        for trial_id in trial_ids:
            self._known.pop(trial_id, None)

    def prepare(self, reports: Sequence[MetricReport]) -> PreparedAppends:
        """Make reports that are covered ready to be written; none may have the trial, group and step of another."""
        prepared = PreparedAppends([], [])
        for report in reports:
            trial = self._known[report.trial_id]
            assert report.step is not None
            prepared.rows.append(
                _Appended(
                    report.trial_id,
                    report.run,
                    trial.state,
                    trial.restarts,
                    report.group,
                    report.kind,
                    report.step,
                    report.end_time,
                    msgspec.Raw(report.document.encode()),
                )
            )
            prepared.events.append(report_event(report.trial_id, trial, report.group, report.step))
        return prepared

    def advance(self, appended: Iterable[tuple[int, str, int]]) -> None:
        """Remember the trial, group and step of reports that were appended."""
        for trial_id, group, step in appended:
            if (known := self._known.get(trial_id)) is not None:
                known.newest[group] = max(step, known.newest.get(group, step))


class PreparedAppends(Struct):
    """Reports that are ready to be appended, and what may be announced."""

    rows: list[_Appended]
    events: list[TrialChanged]


async def append(driver: Any, prepared: PreparedAppends, events: Sequence[PublicEvent]) -> set[tuple[int, str, int]]:
    """Append reports and ``events`` with an asyncpg connection, in one statement that commits by itself.

    Returns trial, group and step of each report that was written.
    """
    messages = [event_message(event) for event in events]
    written = await driver.fetch(
        APPEND,
        list({row.trial_id for row in prepared.rows}),
        msgspec.json.encode(prepared.rows).decode(),
        [message["subject"] for message in messages],
        [msgspec.json.encode(message["headers"]).decode() for message in messages],
        [message["payload"] for message in messages],
    )
    return {(trial_id, group, step) for trial_id, group, step in written}
