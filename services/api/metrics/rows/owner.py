"""Keeps summaries in rows up to date: folds what was appended, settles trials, deletes summaries that were replaced.

One replica of the api does so, whichever holds a session-level advisory lock; PostgreSQL frees it when its holder dies,
and the others try to take it every second. Whatever it is doing is a transaction, and done again by the next. Since
every step locks what it changes, a second owner would be in the way and do no harm.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import asyncpg
import structlog

from libs.db.engine import Database
from libs.db.failures import is_connection_failure
from libs.errors import Unavailable
from libs.retry import every, with_retry
from libs.telemetry import counter, gauge
from services.api.metrics.rows import statements as sql
from services.api.metrics.rows.folding import fold_trial
from services.api.metrics.rows.former_release import FormerRelease
from services.api.metrics.rows.garbage import delete_garbage
from services.api.metrics.rows.settling import settle

log = structlog.get_logger()

OWNER_LOCK: Final = 0x5E50_1079
"""Key of the advisory lock; any number that nothing else uses."""
_RETRY_S: Final = 1.0
_EVERY_S: Final = 0.5
_SETTLE_AGAIN_S: Final = 2.0
_SHARE: Final = 20
"""Settling a trial, which its reports wait for, takes one part in so many of the time: wide ones are settled seldom."""
_FAREWELL_S: Final = 5.0
_LOST_RACE: Final = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)

FOLDED: Final = counter("resolute_api_metric_reports_folded_total", "Appended reports that were added to summaries")
OWNING: Final = gauge("resolute_api_metric_summaries_owner", "1 in the process that keeps summaries up to date")


async def keep_summaries(db: Database, former: FormerRelease) -> None:
    """Keep them until cancelled; losing the database only delays."""
    await with_retry(
        lambda: _keep_while_connected(db.url, former),
        is_transient=_is_interruption,
        on_retry=lambda error, attempt: log.warning("metrics.owner_interrupted", error=str(error)),
        pause_s=every(_RETRY_S),
    )


def _is_interruption(error: Exception) -> bool:
    return isinstance(error, (Unavailable, *_LOST_RACE)) or is_connection_failure(error)


async def _keep_while_connected(url: str, former: FormerRelease) -> None:
    connection = await asyncpg.connect(
        url,
        timeout=10,
        server_settings={"application_name": "resolute-summaries", "tcp_keepalives_idle": "10", "jit": "off"},
    )
    try:
        while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", OWNER_LOCK):
            OWNING.set(0)
            await asyncio.sleep(_RETRY_S)
        OWNING.set(1)
        owner = SummaryKeeper(connection, former)
        try:
            while True:
                await owner.look()
                await asyncio.sleep(_EVERY_S)
        except asyncio.CancelledError:
            await _leave(connection)
            raise
    finally:
        OWNING.set(0)
        connection.terminate()  # frees the lock at once, also when the connection is half dead


async def _leave(connection: Any) -> None:
    """Settle what there is time for: the release before may be what starts next."""
    try:
        async with asyncio.timeout(_FAREWELL_S):
            await settle_all(connection)
    except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        log.warning("metrics.summaries_left", error=str(error))


async def settle_all(driver: Any) -> int:
    """Settle all trials that are marked; returns how many. Each is a transaction of its own."""
    marked = [trial_id for (trial_id,) in await driver.fetch(sql.MARKED)]
    for trial_id in marked:
        await settle(driver, trial_id)
    return len(marked)


class SummaryKeeper:
    """What the owner does with an asyncpg connection, and when it settled which trial."""

    def __init__(self, driver: Any, former: FormerRelease) -> None:
        self._driver = driver
        self._former = former
        self._settles_at: dict[int, float] = {}

    async def look(self) -> None:
        """Do what there is to do now, once for each trial. Raises what the database raises."""
        await self._former.look(self._driver)
        marked = [trial_id for (trial_id,) in await self._driver.fetch(sql.MARKED)]
        for trial_id in marked:
            await self._attend(trial_id)
        # Those that are not marked any more are settled: when they are next, it is as if they had never been.
        self._settles_at = {
            trial_id: at for trial_id, at in self._settles_at.items() if trial_id in marked or at > _now_s()
        }
        await delete_garbage(self._driver)

    async def _attend(self, trial_id: int) -> None:
        began_s = _now_s()
        if self._former.is_connected:
            # Services of the release before wait for it, and write it themselves from then on.
            await settle(self._driver, trial_id, to_column=True)
        elif began_s >= self._settles_at.setdefault(trial_id, began_s + _SETTLE_AGAIN_S):
            FOLDED.inc(await settle(self._driver, trial_id))
            now_s = _now_s()
            self._settles_at[trial_id] = now_s + max(_SETTLE_AGAIN_S, _SHARE * (now_s - began_s))
        else:
            FOLDED.inc(await fold_trial(self._driver, trial_id))


def _now_s() -> float:
    return asyncio.get_running_loop().time()
