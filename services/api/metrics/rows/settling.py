"""Brings the columns of a trial up to date whose summary is in rows: the release before reads and writes them.

Without a mark a trial is settled. It stays in rows until one of them writes its summary, or it is taken back here.
"""

from __future__ import annotations

from typing import Any

import structlog
from msgspec import Struct

from libs.db.failures import is_connection_failure
from services.api.metrics.rows import statements as sql
from services.api.metrics.rows.summary_rows import fold_tail, group_row

log = structlog.get_logger()


async def settle(driver: Any, trial_id: int, *, to_column: bool = False) -> int:
    """Fold all reports of a trial and write its summary and total into its row, on an asyncpg connection outside of a
    transaction. Reports of the trial wait for that: fold most of them before, where there are many.

    to_column  keep the summary in the column alone from now on
    Returns how many reports were folded.
    """
    folded = 0
    async with driver.transaction():
        await driver.execute(sql.WRITES_ROWS)
        if await driver.fetchval(sql.LOCK_TRIAL, trial_id):
            await driver.execute(sql.LOCK_SUMMARIES, [trial_id])
            rows = [group_row(record) for record in await driver.fetch(sql.LOCK_GROUPS, [trial_id])]
            for row in rows:
                if row.newest_step > row.folded_step:
                    folded += await fold_tail(driver, row)
            total = max((row.newest_step for row in rows), default=0)
            await driver.execute(sql.WRITE_COLUMN, trial_id, total, not to_column)
            if to_column:
                await driver.execute(sql.FORGET_GROUPS, [trial_id])
        # Also of a trial that is deleted, or in its column.
        await driver.execute(sql.UNMARK, trial_id)
    return folded


class Settled(Struct, frozen=True):
    """How many trials were settled, and which of them could not be, whose errors are logged."""

    count: int
    left: list[int]


async def settle_all(driver: Any) -> Settled:
    """Settle all trials that are marked, each in a transaction of its own. Raises what the database raises, unless it
    is about one trial."""
    marked = [trial_id for (trial_id,) in await driver.fetch(sql.MARKED)]
    left = []
    for trial_id in marked:
        try:
            await settle(driver, trial_id)
        except Exception as error:
            if driver.is_closed() or is_connection_failure(error):
                raise
            log.warning("metrics.trial_not_settled", trial_id=trial_id, exc_info=True)
            left.append(trial_id)
    return Settled(len(marked) - len(left), left)
