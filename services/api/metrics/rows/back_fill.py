"""Puts the summaries of trials into rows that nobody reports just now; most of these ended long ago.

A trial that is reported gets there with its report. The others are found by going through all of them in the order of
their ids, some at a time and with pauses: there may be a million. What is done can be seen of the trials themselves, so
whoever owns the summaries next begins in front, and passes over it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import structlog
from msgspec import Struct

from libs.db.connecting.settings import IMPORT_APPLICATION
from libs.db.failures import is_connection_failure
from libs.telemetry import counter
from services.api.metrics.rows.staging import move_into_rows

log = structlog.get_logger()

MOVED: Final = counter(
    "resolute_api_metric_summaries_moved_total", "Trials whose summary was put into rows without a report"
)
LOOKED_AT_ONCE: Final = 2_000
_TRIALS_AT_ONCE: Final = 100
_BYTES_AT_ONCE: Final = 128 * 1024
"""Of summaries as they are stored, which is compressed: some thousand names. A larger one is moved alone."""
_MOST_LOSSES: Final = 3
"""A trial that was moved alone when the connection was lost, so often, is left: it may be what ended it."""

# Those that were never reported have an empty summary, and get into rows with their first report.
_NEXT: Final = """
WITH next AS MATERIALIZED (
       SELECT id, NOT summary_in_rows AND pg_column_size(summary_metrics) > pg_column_size('{}'::jsonb) AS is_due,
              pg_column_size(summary_metrics) AS size
         FROM trials
        WHERE id > $1
        ORDER BY id
        LIMIT $2
     )
SELECT max(id) AS last, array_agg(id ORDER BY id) FILTER (WHERE is_due) AS ids,
       array_agg(size ORDER BY id) FILTER (WHERE is_due) AS sizes
  FROM next
"""
# The trials come before their reports, which would be taken for some that are not in the summary.
_IMPORT_IS_UNDER_WAY: Final = """
SELECT EXISTS (SELECT FROM imports WHERE finished_at IS NULL)
    OR EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1)
"""


class BackFillPace(Struct, frozen=True):
    """How much of the time it works, and when it looks for more after it has been through."""

    moment_s: float = 0.1
    pauses: float = 4.0
    """A pause is so many times as long as what was done before it."""
    again_after_s: float = 60.0


class BackFill:
    """How far it is. This outlives a connection, which a trial that cannot be moved may have ended."""

    def __init__(self, pace: BackFillPace | None = None) -> None:
        self._pace = pace or BackFillPace()
        self.begin_again()

    def begin_again(self) -> None:
        """Go through all trials once more: summaries may be in columns again."""
        self._goes_on_at_s = 0.0
        self._looked_up_to = 0
        self._batches: list[list[int]] = []
        self._changed: list[int] = []
        self._losses: dict[int, int] = {}

    async def go_on(self, driver: Any) -> None:
        """Work for a moment, if it is time for that, with an asyncpg connection outside of a transaction.

        Raises what the database raises, unless it is about one trial.
        """
        if (began_s := _now_s()) < self._goes_on_at_s:
            return
        if await driver.fetchval(_IMPORT_IS_UNDER_WAY, IMPORT_APPLICATION):
            return
        while _now_s() < began_s + self._pace.moment_s:
            if self._batches:
                await self._move(driver, self._batches.pop(0))
            elif not await self._find(driver):
                self._batches, self._changed = [[trial_id] for trial_id in self._changed], []
                self._goes_on_at_s = _now_s() + self._pace.again_after_s
                return
        self._goes_on_at_s = _now_s() + self._pace.pauses * (_now_s() - began_s)

    async def _find(self, driver: Any) -> bool:
        """Look at the next trials; returns whether there were any."""
        last, ids, sizes = await driver.fetchrow(_NEXT, self._looked_up_to, LOOKED_AT_ONCE)
        if last is None:
            return False
        self._looked_up_to = last
        self._batches = batches(zip(ids or [], sizes or [], strict=True))
        return True

    async def _move(self, driver: Any, trial_ids: list[int]) -> None:
        try:
            moved = await move_into_rows(driver, trial_ids)
        except Exception as error:
            is_lost = driver.is_closed() or is_connection_failure(error)
            self._set_apart(trial_ids, is_lost=is_lost)
            if is_lost:
                raise
        else:
            MOVED.inc(len(moved.trial_ids))
            self._changed.extend(moved.changed)

    def _set_apart(self, trial_ids: list[int], *, is_lost: bool) -> None:
        """Let each have its own turn where several were tried; leave the one that it was about."""
        if len(trial_ids) > 1:
            self._batches[:0] = [[trial_id] for trial_id in trial_ids]
            return
        (trial_id,) = trial_ids
        losses = self._losses[trial_id] = self._losses.get(trial_id, 0) + 1
        if is_lost and losses < _MOST_LOSSES:
            self._batches.append(trial_ids)
        else:
            log.warning("metrics.trial_left_in_column", trial_id=trial_id, exc_info=True)


def batches(sizes: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Trials in their order, as many together as are moved at once; ``sizes`` of their summaries in bytes, by trial."""
    found: list[list[int]] = []
    total = 0
    for trial_id, size in sizes:
        if not found or len(found[-1]) == _TRIALS_AT_ONCE or total + size > _BYTES_AT_ONCE:
            found.append([])
            total = 0
        found[-1].append(trial_id)
        total += size
    return found


def _now_s() -> float:
    return asyncio.get_running_loop().time()
