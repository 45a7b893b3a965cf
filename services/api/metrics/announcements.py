"""Announces metrics on the bus: validations at once, the rest of a trial's reports now and then.

An event without values only says "look again", so several of one trial within a moment are worth as much as the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

import msgspec

from libs.db.outbox import event_message
from libs.events.changes import PublicEvent, TrialChanged
from services.api.metrics.statements import ENQUEUE

_REMEMBERED: Final = 10_000


class ReportingTrial(Protocol):
    """What an event says of the trial of a report, besides its id."""

    @property
    def experiment_id(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def task_id(self) -> str: ...
    @property
    def restarts(self) -> int: ...


def report_event(
    trial_id: int, trial: ReportingTrial, group: str, step: int | None, metrics: Mapping[str, Any] | None = None
) -> TrialChanged:
    """The event of a report that was stored; ``metrics`` are those of a validation."""
    return TrialChanged(
        trial_id=trial_id,
        experiment_id=trial.experiment_id,
        what="metrics",
        state=trial.state,
        task_id=trial.task_id,
        restarts=trial.restarts,
        group=group,
        steps_completed=step,
        metrics=None if metrics is None else dict(metrics),
    )


class Announcements:
    """Which events go out now and which are held back; times are seconds of a monotonic clock."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._announced_at: dict[int, float] = {}
        self._held: dict[int, TrialChanged] = {}

    def admit(self, events: Iterable[PublicEvent], now_s: float) -> list[PublicEvent]:
        """The events to publish now; of the others the newest of each trial is held until it is due."""
        admitted: list[PublicEvent] = []
        for event in events:
            if isinstance(event, TrialChanged) and event.metrics is None and not self._is_due(event.trial_id, now_s):
                self._held[event.trial_id] = event
                continue
            admitted.append(event)
            if isinstance(event, TrialChanged):
                self._announced(event.trial_id, now_s)
        return admitted

    def take_due(self, now_s: float) -> list[PublicEvent]:
        """Events that were held back long enough; they are not held any longer."""
        due = [event for trial_id, event in self._held.items() if self._is_due(trial_id, now_s)]
        for event in due:
            self._announced(event.trial_id, now_s)
        return list(due)

    def due_in_s(self, now_s: float) -> float | None:
        """How long until ``take_due`` has something; None when nothing is held back."""
        if not self._held:
            return None
        return max(0.0, min(self._announced_at.get(trial, 0.0) for trial in self._held) + self._interval_s - now_s)

    def _is_due(self, trial_id: int, now_s: float) -> bool:
        last = self._announced_at.get(trial_id)
        return last is None or now_s >= last + self._interval_s

    def _announced(self, trial_id: int, now_s: float) -> None:
        self._held.pop(trial_id, None)
        self._announced_at[trial_id] = now_s
        if len(self._announced_at) > _REMEMBERED:
            self._announced_at = {
                trial: at
                for trial, at in self._announced_at.items()
                if trial in self._held or not self._is_due(trial, now_s)
            }


async def enqueue_events(driver: Any, events: Iterable[PublicEvent]) -> None:
    """Put events into the outbox with an asyncpg connection, as part of its transaction if it is in one."""
    rows = [event_message(event) for event in events]
    if rows:
        await driver.execute(
            ENQUEUE,
            [row["subject"] for row in rows],
            [msgspec.json.encode(row["headers"]).decode() for row in rows],
            [row["payload"] for row in rows],
        )
