"""The fast path, the locked path and the append path of metric reports leave the same rows for the same reports."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from libs.db.engine import Database, driver_connection
from libs.db.tables.metrics import metrics
from libs.db.tables.trials import trials
from libs.events.changes import PublicEvent, TrialChanged
from services.api.metrics.fast_path import KnownTrials, store_fast
from services.api.metrics.locked_path import store_locked
from services.api.metrics.report import MetricReport, make_report
from services.api.metrics.rows.append_path import AppendableTrials, append
from services.api.metrics.rows.folding import fold_trial
from services.api.metrics.rows.settling import settle
from tests.integration.api.tasks.service import new_run, row_of, rows_of

TIME: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
VALUES = (
    st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | st.sampled_from(["NaN", "Infinity", "-Infinity", "text", None, True, {"deep": [1, None]}])
)


class Sent(msgspec.Struct, frozen=True):
    """What training code sends, for whichever trial; ``ahead`` counts from its newest step.

    late  by a run that the trial has left behind
    """

    group: str
    ahead: int
    avg: dict[str, Any]
    batches: list[Any] | None
    late: bool


class Restart(msgspec.Struct, frozen=True):
    """The trial begins its next run."""


class Fold(msgspec.Struct, frozen=True):
    """What was appended is folded; only where there is something to fold."""


Happening: TypeAlias = Sent | Restart | Fold

SENT = st.builds(
    Sent,
    group=st.sampled_from(["training", "training", "custom", "validation"]),
    ahead=st.sampled_from([1, 1, 1, 2, 0, -1]),
    avg=st.dictionaries(st.sampled_from(["loss", "accuracy", "other"]), VALUES, max_size=2),
    batches=st.none() | st.just([{"loss": 0.5}]),
    late=st.sampled_from([False, False, False, True]),
)
HISTORIES = st.lists(st.one_of(SENT, SENT, SENT, SENT, st.just(Restart()), st.just(Fold())), min_size=4, max_size=14)


class Training:
    """One trial, and what was told about its reports."""

    def __init__(self, db: Database, path: Literal["fast", "append", "locked"]) -> None:
        self._db = db
        self._path = path
        self._known = KnownTrials()
        self._in_rows = AppendableTrials()
        self.told: list[str] = []
        self.events: list[PublicEvent] = []
        self.took_path = 0

    async def live(self, history: Sequence[Happening]) -> None:
        self.trial = (await new_run(self._db)).trial
        run, step = 1, 0
        for happening in history:
            if isinstance(happening, Fold):
                async with self._db.read() as connection:
                    await fold_trial(await driver_connection(connection), self.trial)
                continue
            if isinstance(happening, Restart):
                run += 1
                async with self._db.transaction() as tx:
                    await tx.execute(text(f"UPDATE trials SET run_id = {run} WHERE id = {self.trial}"))
                continue
            step = max(0, step + happening.ahead)
            await self._store(happening, step, max(1, run - happening.late))

    async def _store(self, sent: Sent, step: int, run: int) -> None:
        report = make_report(
            trial_id=self.trial,
            run=run,
            group=sent.group,
            step=step,
            end_time=TIME,
            avg=sent.avg,
            batches=sent.batches,
        )
        async with self._db.read() as connection:
            driver = await driver_connection(connection)
            if (events := await self._store_by_path(driver, report)) is not None:
                self.took_path += 1
                self._tell(None, events)
                return
            async with driver.transaction():
                to_rows = self._path == "append"
                outcome = await store_locked(driver, [report], with_experiments=True, to_rows=to_rows)
            self._known.forget([self.trial])
            self._in_rows.forget([self.trial])
            self._known.remember(outcome.written)
            self._in_rows.remember(outcome.in_rows)
            self._tell(outcome.errors[0], outcome.events)

    async def _store_by_path(self, driver: Any, report: MetricReport) -> Sequence[PublicEvent] | None:
        if self._path == "fast" and self._known.covers(report):
            prepared = self._known.prepare([report])
            written = await store_fast(driver, prepared, [])
            self._known.remember(written)
            return prepared.events if written else None
        if self._path == "append" and self._in_rows.covers(report):
            appends = self._in_rows.prepare([report])
            appended = await append(driver, appends, [])
            self._in_rows.advance(appended)
            return appends.events if appended else None
        return None

    def _tell(self, error: Exception | None, events: Sequence[PublicEvent]) -> None:
        self.told.append(str(error))
        changes = [event for event in events if isinstance(event, TrialChanged)]
        assert all(event.task_id for event in changes)
        self.events += [msgspec.structs.replace(event, trial_id=0, experiment_id=0, task_id="") for event in changes]

    async def remains(self) -> Any:
        """All that is stored of it, without ids."""
        async with self._db.read() as connection:
            await settle(await driver_connection(connection), self.trial)
        rows = await rows_of(self._db, metrics, trial_id=self.trial)
        position = {row.id: n for n, row in enumerate(sorted(rows, key=lambda row: row.id))}
        trial = await row_of(self._db, trials, id=self.trial)
        return (
            [tuple(value for name, value in row._mapping.items() if name not in ("id", "trial_id")) for row in rows],
            (trial.run_id, trial.total_batches, trial.summary_metrics),
            (trial.searcher_metric_value, trial.searcher_metric_signed),
            (position.get(trial.best_validation_id), position.get(trial.latest_validation_id)),
        )


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(history=HISTORIES)
async def test_all_paths_leave_the_same_rows(db: Database, history: list[Happening]) -> None:
    locked = Training(db, "locked")
    await locked.live(history)
    expected = repr(await locked.remains())  # so that NaN is equal to NaN
    for path in (Training(db, "fast"), Training(db, "append")):
        await path.live(history)
        assert path.told == locked.told
        assert path.events == locked.events
        assert repr(await path.remains()) == expected


async def test_ordinary_training_takes_the_fast_path(db: Database) -> None:
    ordinary = Sent(group="training", ahead=1, avg={"loss": 0.5}, batches=None, late=False)
    for path in (Training(db, "fast"), Training(db, "append")):
        await path.live([ordinary] * 5)
        assert path.took_path == 4
