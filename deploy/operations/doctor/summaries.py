"""Summaries of metrics: whether their owner keeps up, and how many trials have theirs in the old place still."""

from __future__ import annotations

import asyncio
from typing import Final

import asyncpg
from msgspec import Struct

from deploy.operations.doctor.findings import Finding, ok, warning
from libs.db.connecting.settings import DatabaseSettings, address
from libs.db.failures import DRIVER_ERRORS

PART: Final = "summaries of metrics"
ANSWERS_WITHIN_S: Final = 5.0
LAGS_LONG_S: Final = 900.0
"""Longer than a summary waits of the widest trial while its owner can fold it."""

_LAGGING: Final = """
SELECT count(*) FILTER (WHERE lags_s > $1) AS trials, coalesce(max(lags_s), 0)::float8 AS longest_s
  FROM (SELECT extract(epoch FROM clock_timestamp() - marked_at) AS lags_s FROM metric_marks) AS marked
"""
# No large document is read: an empty one is the smallest.
_IN_COLUMNS: Final = """
SELECT count(*) FROM trials
 WHERE NOT summary_in_rows AND pg_column_size(summary_metrics) > pg_column_size('{}'::jsonb)
"""


class Summaries(Struct, frozen=True, kw_only=True):
    """lagging  trials whose summary has not followed their reports for long, ``longest_s`` at most"""

    lagging: int
    longest_s: float
    in_columns: int | None
    """None: there are too many trials to look at in this time."""


async def check_summaries(settings: DatabaseSettings) -> list[Finding]:
    """Nothing when the database does not answer, or lacks the tables: that is said elsewhere."""
    try:
        async with asyncio.timeout(2 * ANSWERS_WITHIN_S):
            return about_summaries(await _look(address(settings)))
    except (OSError, TimeoutError, *DRIVER_ERRORS):
        return []


async def _look(url: str) -> Summaries:
    connection = await asyncpg.connect(url, timeout=ANSWERS_WITHIN_S)
    try:
        lagging, longest_s = await connection.fetchrow(_LAGGING, LAGS_LONG_S)
        try:
            in_columns = await connection.fetchval(_IN_COLUMNS, timeout=ANSWERS_WITHIN_S)
        except TimeoutError:
            in_columns = None
        return Summaries(lagging=lagging, longest_s=longest_s, in_columns=in_columns)
    finally:
        await connection.close(timeout=ANSWERS_WITHIN_S)


def about_summaries(seen: Summaries) -> list[Finding]:
    """Pure."""
    return [_about_lagging(seen), _about_columns(seen.in_columns)]


def _about_lagging(seen: Summaries) -> Finding:
    if not seen.lagging:
        return ok(PART, "follow the reports")
    says = f"those of {seen.lagging} trials have not followed their reports, for {seen.longest_s / 60:.0f} min at most"
    remedy = (
        "metrics.trial_not_folded in the log of the api says why; before the release before starts, type: "
        "resolute db settle-metrics"
    )
    return warning(PART, says, remedy=remedy)


def _about_columns(number: int | None) -> Finding:
    if number is None:
        return ok(PART, "there are too many trials to say how many have theirs in their own row alone")
    if not number:
        return ok(PART, "none is in the row of its trial alone")
    return ok(
        PART, f"those of {number} trials are in their own row alone; the api moves them once the release before is gone"
    )
