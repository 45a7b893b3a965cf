"""Folds what was appended to a trial, and nobody waits for it.

A step may be committed after a later one, so what is committed is not all that comes before it. Sealing finds out:
it waits until no report of the trial is being appended, and looks how far each group is. Whatever is appended from then
on lies behind that, unless the summary is made anew, which gives it another number; so all before it can be folded
without keeping anybody from appending.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from services.api.metrics.rows import statements as sql
from services.api.metrics.rows.summary_rows import Bounds, GroupRow, fold_tail, group_row

REPORTS_AT_ONCE: Final = 2_000
VALUES_AT_ONCE: Final = 400_000
"""What is folded in one transaction, which the locked path of the group has to wait for: about so much. Fewer values
would have the names of wide reports written too often."""
_TRIES: Final = 20
_PAUSE_S: Final = 0.005


async def seal(driver: Any, trial_id: int) -> list[GroupRow]:
    """How far the groups of a trial are, on an asyncpg connection outside of a transaction.

    Returns those with reports that are not folded; all up to their newest step may be.
    """
    for _ in range(_TRIES):
        # Waiting for the lock would send what is reported meanwhile to the locked path.
        async with driver.transaction():
            if await driver.fetchval(sql.TRY_LOCK_SUMMARY, trial_id):
                return await _behind(driver, trial_id)
        await asyncio.sleep(_PAUSE_S)
    async with driver.transaction():
        await driver.execute(sql.LOCK_SUMMARIES, [trial_id])
        return await _behind(driver, trial_id)


async def _behind(driver: Any, trial_id: int) -> list[GroupRow]:
    rows = [group_row(record) for record in await driver.fetch(sql.GROUPS, [trial_id])]
    return [row for row in rows if row.newest_step > row.folded_step]


async def fold_sealed(driver: Any, sealed: GroupRow) -> int:
    """Fold the next reports of a group up to where it was sealed, in a transaction; returns how many. ``sealed``
    follows."""
    async with driver.transaction():
        record = await driver.fetchrow(sql.LOCK_GROUP, [sealed.trial_id], sealed.group, sealed.summary_id)
        if record is None:
            return 0
        row = group_row(record)
        most = Bounds(REPORTS_AT_ONCE, VALUES_AT_ONCE)
        folded = await fold_tail(driver, row, up_to=sealed.newest_step, most=most)
        sealed.folded_step = row.folded_step
        return folded


async def fold_trial(driver: Any, trial_id: int) -> int:
    """Fold what was appended to a trial before now, on an asyncpg connection outside of a transaction; returns how many
    reports that were."""
    count = 0
    for sealed in await seal(driver, trial_id):
        while sealed.folded_step < sealed.newest_step and (folded := await fold_sealed(driver, sealed)):
            count += folded
    return count
