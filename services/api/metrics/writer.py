"""Writes metric reports by group commit: those that arrive while a transaction runs share the next one.

Nobody waits for company: a report that finds its lane idle is written at once. Under load the batches grow by
themselves, and with them the number of reports per commit, which is why all reports that can take the fast path share
one lane, and all that can be appended another. Neither waits for a lock. What does wait, for its trial or for the
experiments of a batch, has lanes of its own. A report that cannot be stored fails alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from enum import Enum
from functools import partial
from typing import Annotated, Any, Final, TypeAlias

import asyncpg
import structlog
from msgspec import Meta, Struct

from libs.db.engine import Database, driver_connection
from libs.db.failures import MAYBE_BAD_VALUE, is_bad_value
from libs.errors import InvalidRequest, ResoluteError, Unavailable
from libs.telemetry import counter
from libs.waiting import wait_until_set
from services.api.metrics.announcements import Announcements, enqueue_events
from services.api.metrics.fast_path import KnownTrials, store_fast
from services.api.metrics.groups import Kind
from services.api.metrics.locked_path import ExperimentsNeeded, store_locked
from services.api.metrics.report import MetricReport
from services.api.metrics.rows.append_path import AppendableTrials, append

log = structlog.get_logger()

STORED: Final = counter("resolute_api_metric_reports_stored_total", "Metric reports that were stored")
BATCHES: Final = counter("resolute_api_metric_batches_total", "Transactions that stored metric reports")

_LOST_RACE: Final = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
_TRIES: Final = 5
_LINGER_S: Final = 0.5
"""How long an idle lane keeps its connection: under load the next report is a moment away."""


class MetricsSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lanes: Annotated[int, Meta(ge=1)] = 2
    """Transactions at a time beside those of the fast path and of appending; a trial always takes the same lane. Each
    uses a connection while it is busy."""
    max_batch: Annotated[int, Meta(ge=1)] = 500
    """Reports that share a transaction at most."""
    max_waiting: Annotated[int, Meta(ge=1)] = 20_000
    """Reports that wait in a lane at most; beyond it clients are asked to come again."""
    announce_interval_s: Annotated[float, Meta(ge=0)] = 1.0
    """Events about other reports than validations are published at most this often per trial and lane."""


class _Waiting:
    __slots__ = ("done", "report")

    def __init__(self, report: MetricReport, done: asyncio.Future[None]) -> None:
        self.report = report
        self.done = done


class _Undecided(Enum):
    LOCKED_PATH = "not stored, and nothing said against it: the locked path decides"


_Outcome: TypeAlias = ResoluteError | _Undecided | None
"""What became of a report; None: it is stored."""
_Commit: TypeAlias = Callable[[Any, Sequence[MetricReport], Announcements], Awaitable[Sequence[_Outcome]]]
"""Stores a batch with an asyncpg connection; one outcome per report, in their order."""
ToRows: TypeAlias = Callable[[], bool]


def _never() -> bool:
    return False


class MetricsWriter:
    """The one way reports get into the database. ``run`` must be running for ``store`` to return."""

    def __init__(self, *, db: Database, settings: MetricsSettings | None = None, to_rows: ToRows = _never) -> None:
        """to_rows  whether the summary of a trial is put into rows when it is reported next"""
        settings = settings or MetricsSettings()
        self._to_rows = to_rows
        self._known = _Known(KnownTrials(), AppendableTrials())
        locked = partial(_take_locked_path, self._known, to_rows)
        self._locked = [_Lane(db, settings, locked, key=_trial) for _ in range(settings.lanes)]
        self._fast = _Lane(
            db, settings, partial(_take_fast_path, self._known.trials), key=_trial, otherwise=self._locked_lane
        )
        self._append = _Lane(
            db, settings, partial(_take_append_path, self._known.in_rows), key=_step, otherwise=self._locked_lane
        )

    async def store(self, report: MetricReport) -> None:
        """Return when the report is committed, or was before (clients repeat requests).

        Raises InvalidRequest, NotFound; Unavailable when too many wait; and what the database raises.
        """
        if self._known.in_rows.covers(report):
            lane = self._append
        elif self._known.trials.covers(report) and not self._to_rows():
            lane = self._fast
        else:
            lane = self._locked_lane(report)
        waiting = _Waiting(report, asyncio.get_running_loop().create_future())
        lane.add(waiting)
        await waiting.done

    async def run(self) -> None:
        """Write until cancelled; whoever waits then gets Unavailable."""
        async with asyncio.TaskGroup() as tasks:
            for lane in (self._fast, self._append, *self._locked):
                tasks.create_task(lane.run(), name="metrics lane")

    def _locked_lane(self, report: MetricReport) -> _Lane:
        return self._locked[report.trial_id % len(self._locked)]


class _Known(Struct, frozen=True):
    """Trials as their last report has left them, whose summary is in a column, and in rows."""

    trials: KnownTrials
    in_rows: AppendableTrials


def _trial(report: MetricReport) -> Hashable:
    return report.trial_id


def _step(report: MetricReport) -> Hashable:
    return report.trial_id, report.group, report.step


class _Lane:
    """Reports that wait for the same connection.

    key        of reports with the same one, no two share a batch, profiling apart
    otherwise  the lane for what this one could not decide
    """

    def __init__(
        self,
        db: Database,
        settings: MetricsSettings,
        commit: _Commit,
        *,
        key: Callable[[MetricReport], Hashable],
        otherwise: Callable[[MetricReport], _Lane] | None = None,
    ) -> None:
        self._db = db
        self._settings = settings
        self._commit = commit
        self._key = key
        self._otherwise = otherwise
        self._waiting: list[_Waiting] = []
        self._arrived = asyncio.Event()
        self._closed = False
        self._announcements = Announcements(settings.announce_interval_s)

    def add(self, waiting: _Waiting) -> None:
        """Raises Unavailable."""
        if self._closed:
            raise Unavailable("the service is stopping, try again")
        if len(self._waiting) >= self._settings.max_waiting:
            raise Unavailable("too many metric reports are waiting, try again")
        self._waiting.append(waiting)
        self._arrived.set()

    async def run(self) -> None:
        try:
            while True:
                await self._wait_for_work()
                await self._work()
        finally:
            self._closed = True
            _refuse(self._waiting, Unavailable("the service is stopping, try again"))

    async def _wait_for_work(self) -> None:
        """Return when a report has arrived, or an event is due that was held back."""
        await wait_until_set(self._arrived, timeout_s=self._announcements.due_in_s(_now_s()))

    async def _work(self) -> None:
        """Write everything that waits. When there is no connection, those who wait hear of it; the lane goes on."""
        try:
            async with self._db.read() as connection:
                driver = await driver_connection(connection)
                try:
                    while await self._has_more():
                        await self._write(driver, self._take())
                    await enqueue_events(driver, self._announcements.take_due(_now_s()))
                except Exception:
                    await connection.invalidate()  # whatever state it is in, nobody else shall have it
                    raise
        except Exception as error:  # the rim: whoever waits is answered, and the next report may find things better
            log.warning("metrics.lane_interrupted", waiting=len(self._waiting), exc_info=True)
            _refuse(self._waiting, error)
            self._waiting = []
            self._arrived.clear()
            self._announcements.take_due(_now_s())  # notifications, which may be lost

    async def _has_more(self) -> bool:
        """Whether reports wait, or come before it is worth while to give the connection back."""
        if not self._waiting:
            await wait_until_set(self._arrived, timeout_s=_LINGER_S)
        return bool(self._waiting)

    def _take(self) -> list[_Waiting]:
        """The reports of the next batch: the oldest of each key (profiling apart), the others stay in line."""
        batch: list[_Waiting] = []
        left: list[_Waiting] = []
        taken: set[Hashable] = set()
        for waiting in self._waiting:
            report = waiting.report
            key = self._key(report)
            if len(batch) == self._settings.max_batch or key in taken:
                left.append(waiting)
                continue
            if report.kind is not Kind.PROFILING:
                taken.add(key)
            batch.append(waiting)
        self._waiting = left
        if not left:
            self._arrived.clear()
        return batch

    async def _write(self, driver: Any, batch: Sequence[_Waiting]) -> None:
        try:
            outcomes = await self._commit(driver, [waiting.report for waiting in batch], self._announcements)
        except asyncio.CancelledError:
            _refuse(batch, Unavailable("the service is stopping, try again"))
            raise
        except Exception as error:
            if is_bad_value(error):
                await self._refuse_bad_value(driver, batch)
                return
            # asyncpg takes the sudden end of an idle connection for a mistake of its own.
            lost = driver.is_closed() or isinstance(error, asyncpg.InternalClientError)
            _refuse(batch, Unavailable("the database does not answer, try again") if lost else error)
            raise
        else:
            for waiting, outcome in zip(batch, outcomes, strict=True):
                self._conclude(waiting, outcome)
            STORED.inc(sum(outcome is None for outcome in outcomes))

    async def _refuse_bad_value(self, driver: Any, batch: Sequence[_Waiting]) -> None:
        """Write the reports one by one, to find the one that has it."""
        if len(batch) == 1:
            _refuse(batch, InvalidRequest("a value is out of range"))
            return
        for waiting in batch:
            await self._write(driver, [waiting])

    def _conclude(self, waiting: _Waiting, outcome: _Outcome) -> None:
        if outcome is _Undecided.LOCKED_PATH:
            assert self._otherwise is not None
            try:
                self._otherwise(waiting.report).add(waiting)
            except Unavailable as error:
                _refuse([waiting], error)
        elif outcome is not None:
            _refuse([waiting], outcome)
        elif not waiting.done.done():
            waiting.done.set_result(None)


async def _take_fast_path(
    known: KnownTrials, driver: Any, reports: Sequence[MetricReport], announcements: Announcements
) -> Sequence[_Outcome]:
    """Store what can take the fast path, without waiting for anybody."""
    newest = [report for report in reports if known.covers(report)]
    prepared = known.prepare(newest)
    try:
        written = await store_fast(driver, prepared, announcements.admit(prepared.events, _now_s())) if newest else {}
    except (*MAYBE_BAD_VALUE, *_LOST_RACE, asyncpg.IntegrityConstraintViolationError) as error:
        if isinstance(error, asyncpg.InterfaceError) and not is_bad_value(error):
            raise
        log.info("metrics.fast_path_failed", error=str(error), reports=len(newest))
        written = {}
    else:
        BATCHES.inc()
    known.remember(written)
    stored = {report.trial_id: report for report in newest if report.trial_id in written}
    return [None if stored.get(report.trial_id) is report else _Undecided.LOCKED_PATH for report in reports]


async def _take_append_path(
    known: AppendableTrials, driver: Any, reports: Sequence[MetricReport], announcements: Announcements
) -> Sequence[_Outcome]:
    """Append what can be appended, without waiting for anybody."""
    covered = [report for report in reports if known.covers(report)]
    prepared = known.prepare(covered)
    written: set[tuple[int, str, int]] = set()
    try:
        if covered:
            written = await append(driver, prepared, announcements.admit(prepared.events, _now_s()))
    except (*MAYBE_BAD_VALUE, *_LOST_RACE, asyncpg.IntegrityConstraintViolationError) as error:
        if isinstance(error, asyncpg.InterfaceError) and not is_bad_value(error):
            raise
        log.info("metrics.append_failed", error=str(error), reports=len(covered))
    else:
        BATCHES.inc()
    known.advance(written)
    return [None if _step(report) in written else _Undecided.LOCKED_PATH for report in reports]


async def _take_locked_path(
    known: _Known, to_rows: ToRows, driver: Any, reports: Sequence[MetricReport], announcements: Announcements
) -> Sequence[_Outcome]:
    """Store or refuse each report, waiting for the locks that takes."""
    with_experiments = any(report.kind is Kind.VALIDATION for report in reports)
    trial_ids = [report.trial_id for report in reports if report.kind is not Kind.PROFILING]
    known.trials.forget(trial_ids)
    known.in_rows.forget(trial_ids)
    for tries_left in reversed(range(_TRIES)):
        try:
            async with driver.transaction():
                outcome = await store_locked(driver, reports, with_experiments=with_experiments, to_rows=to_rows())
                await enqueue_events(driver, announcements.admit(outcome.events, _now_s()))
        except ExperimentsNeeded:
            with_experiments = True
            continue
        except _LOST_RACE as error:
            if not tries_left:
                raise
            log.info("metrics.race_lost", error=str(error), reports=len(reports))
            continue
        BATCHES.inc()
        known.trials.remember(outcome.written)
        known.in_rows.remember(outcome.in_rows)
        return outcome.errors
    raise Unavailable("the reports met too many others, try again")


def _refuse(batch: Sequence[_Waiting], error: Exception) -> None:
    for waiting in batch:
        if not waiting.done.done():
            waiting.done.set_exception(error)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
