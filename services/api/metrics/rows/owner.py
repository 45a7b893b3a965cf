"""Keeps summaries in rows up to date: folds what was appended, settles trials, deletes summaries that were replaced,
and puts those into rows that are in columns still.

One replica of the api does so, whichever holds a session-level advisory lock; PostgreSQL frees it when its holder dies,
and the others try to take it every second. Whatever it is doing is a transaction, and done again by the next. Since
every step locks what it changes, a second owner would be in the way and do no harm.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import asyncpg
import structlog
from msgspec import Struct

from libs.db.engine import Database
from libs.db.failures import DRIVER_ERRORS, is_connection_failure, is_of_database
from libs.retry import backoff_s, every, with_retry
from libs.telemetry import counter, gauge
from services.api.metrics.rows import statements as sql
from services.api.metrics.rows.back_fill import BackFill
from services.api.metrics.rows.folding import fold_trial
from services.api.metrics.rows.former_release import FormerRelease
from services.api.metrics.rows.garbage import delete_garbage
from services.api.metrics.rows.settling import settle, settle_all

log = structlog.get_logger()

OWNER_LOCK: Final = 0x5E50_1079
"""Key of the advisory lock; any number that nothing else uses."""
_RETRY_S: Final = 1.0
_EVERY_S: Final = 0.5
_FORMER_EVERY_S: Final = 0.9
"""Reports to services of the release before are refused after two and a half seconds without being settled."""
_GARBAGE_EVERY_S: Final = 2.0
_FAREWELL_S: Final = 5.0
_FAREWELL_RETRY_S: Final = 0.1
_END_S: Final = 2.0
_COMMAND_TIMEOUT_S: Final = 120.0
"""A server that has gone away says nothing; as long as its connection is not known to be lost, nobody else can own."""
_LONGEST_BACKOFF_S: Final = 300.0

FOLDED: Final = counter("resolute_api_metric_reports_folded_total", "Appended reports that were added to summaries")
FAILED: Final = counter(
    "resolute_api_metric_folding_failures_total", "Attempts that failed to bring the summary of a trial up to date"
)
OWNING: Final = gauge("resolute_api_metric_summaries_owner", "1 in the process that keeps summaries up to date")


async def keep_summaries(db: Database, former: FormerRelease) -> None:
    """Keep them until cancelled; whatever the database says only delays."""
    plans: Plans = {}
    back_fill = BackFill()
    has_left = False

    async def keep_while_connected() -> None:
        nonlocal has_left
        connection = await connect(db.url)
        try:
            await _keep(connection, former, plans, back_fill)
        except asyncio.CancelledError:
            has_left = True
            await _leave(connection)
            raise
        finally:
            OWNING.set(0)
            await _end(connection)

    try:
        await with_retry(
            keep_while_connected,
            is_transient=is_of_database,
            on_retry=lambda error, attempt: log.warning("metrics.owner_interrupted", error=str(error)),
            pause_s=every(_RETRY_S),
        )
    except asyncio.CancelledError:
        if not has_left:
            await _leave_without_connection(db.url)
        raise


async def connect(url: str) -> Any:
    """An asyncpg connection for who owns the summaries, or waits to."""
    return await asyncpg.connect(
        url,
        timeout=10,
        command_timeout=_COMMAND_TIMEOUT_S,
        server_settings={"application_name": "resolute-summaries", "tcp_keepalives_idle": "10", "jit": "off"},
    )


async def _end(connection: Any) -> None:
    """Free the lock at once. A backend that waits for somebody else's lock does not see that its client has gone, and
    keeps what it has: its statement is cancelled first, if the server can be reached."""
    try:
        await connection.close(timeout=_END_S)
    except (OSError, *DRIVER_ERRORS) as error:
        log.info("metrics.owner_cut_off", error=str(error))
    finally:
        connection.terminate()  # half dead, or closed by now


async def _keep(connection: Any, former: FormerRelease, plans: Plans, back_fill: BackFill) -> None:
    while not await _own(connection):
        OWNING.set(0)
        await asyncio.sleep(_RETRY_S)
    OWNING.set(1)
    owner = SummaryKeeper(connection, former, plans=plans, back_fill=back_fill)
    while True:
        await owner.look()
        await asyncio.sleep(_EVERY_S)


async def _own(connection: Any) -> bool:
    """Whether the connection has the lock, be it since now or from before."""
    owns: bool = await connection.fetchval("SELECT pg_try_advisory_lock($1)", OWNER_LOCK)
    return owns


async def _leave(connection: Any) -> None:
    """Settle what there is time for: the release before may be what starts next.

    An owner that is about to leave, too, may not have seen the last reports of this replica: it is waited for.
    """
    try:
        async with asyncio.timeout(_FAREWELL_S):
            while await connection.fetch(sql.MARKED):
                if await _own(connection):
                    await settle_all(connection)
                    break
                await asyncio.sleep(_FAREWELL_RETRY_S)
    except (TimeoutError, OSError, *DRIVER_ERRORS) as error:
        log.warning("metrics.summaries_left", error=str(error))


async def _leave_without_connection(url: str) -> None:
    """The same of a replica that was about to connect, be it for the first time: it may have taken reports."""
    try:
        async with asyncio.timeout(_FAREWELL_S):
            connection = await connect(url)
            try:
                await _leave(connection)
            finally:
                connection.terminate()
    except (TimeoutError, OSError, *DRIVER_ERRORS) as error:
        log.warning("metrics.summaries_left", error=str(error))


class FoldingPace(Struct, frozen=True):
    """When a marked trial is attended to. The fewer reports are folded at a time, the more each of them costs; the more
    there are to fold, the more those have to do who read the trial."""

    first_after_s: float = 10.0
    again_after_s: float = 30.0
    many: int = 100
    """A trial that had so many reports to fold soon has as many again."""
    soon_after_s: float = 1.0
    share: int = 20
    """Settling a trial, which its reports wait for, takes one part in so many of the time: wide ones are settled less
    often than they are folded."""


@dataclass(slots=True)
class _Plan:
    """When to attend to a marked trial, and from when on it may be settled; nothing is done before ``tries_at_s``."""

    due_at_s: float
    settles_at_s: float = 0.0
    has_many: bool = True
    failures: int = 0
    tries_at_s: float = 0.0


Plans: TypeAlias = dict[int, _Plan]
"""By trial. They outlive a connection, which a trial that cannot be folded may have ended."""


class SummaryKeeper:
    """What the owner does with an asyncpg connection, and when."""

    def __init__(
        self,
        driver: Any,
        former: FormerRelease,
        pace: FoldingPace | None = None,
        *,
        plans: Plans | None = None,
        back_fill: BackFill | None = None,
    ) -> None:
        """plans and back_fill are those of who owned the summaries before, in this process; they are kept up to date"""
        self._driver = driver
        self._former = former
        self._pace = pace or FoldingPace()
        self._plans: Plans = {} if plans is None else plans
        self._back_fill = back_fill or BackFill()
        self._collects_at_s = 0.0

    async def look(self) -> None:
        """Do what is due now, once for each trial. Raises what the database raises, unless it is about one trial."""
        await self._former.look_again(self._driver, after_s=_FORMER_EVERY_S)
        self._plan([trial_id for (trial_id,) in await self._driver.fetch(sql.MARKED)])
        for trial_id, plan in sorted(self._plans.items(), key=_failures):
            if _now_s() >= plan.tries_at_s:
                await self._attend(trial_id, plan)
        if _now_s() >= self._collects_at_s and not await delete_garbage(self._driver):
            self._collects_at_s = _now_s() + _GARBAGE_EVERY_S
        if self._former.is_connected:
            self._back_fill.begin_again()
        else:
            await self._back_fill.go_on(self._driver)

    def _plan(self, marked: Sequence[int]) -> None:
        first = _now_s() + self._pace.first_after_s
        before = dict(self._plans)
        self._plans.clear()
        self._plans.update((trial_id, before.get(trial_id) or _Plan(first)) for trial_id in marked)

    async def _attend(self, trial_id: int, plan: _Plan) -> None:
        """Bring the trial up to date if that is due. If it cannot be, the others get their turn before it is tried
        again, also when the connection is lost over it."""
        try:
            if self._former.is_connected:
                # Services of the release before wait for it, and write it themselves from then on.
                FOLDED.inc(await settle(self._driver, trial_id, to_column=True))
            elif _now_s() >= plan.due_at_s:
                await self._fold(trial_id, plan)
        except Exception as error:
            plan.failures += 1
            plan.tries_at_s = _now_s() + backoff_s(plan.failures, longest_s=_LONGEST_BACKOFF_S)
            if self._driver.is_closed() or is_connection_failure(error):
                raise
            FAILED.inc()
            log.warning("metrics.trial_not_folded", trial_id=trial_id, failures=plan.failures, exc_info=True)
        else:
            plan.failures = 0

    async def _fold(self, trial_id: int, plan: _Plan) -> None:
        folded = 0
        if plan.has_many or _now_s() < plan.settles_at_s:
            folded += await fold_trial(self._driver, trial_id)
        if (began_s := _now_s()) >= plan.settles_at_s:
            folded += await settle(self._driver, trial_id)
            plan.settles_at_s = _now_s() + self._pace.share * (_now_s() - began_s)
        FOLDED.inc(folded)
        plan.has_many = folded >= self._pace.many
        plan.due_at_s = _now_s() + (self._pace.soon_after_s if plan.has_many else self._pace.again_after_s)


def _failures(item: tuple[int, _Plan]) -> int:
    return item[1].failures


def _now_s() -> float:
    return asyncio.get_running_loop().time()
