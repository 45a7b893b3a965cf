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
from services.api.metrics.rows.summary_rows import GroupRow, fold_tail, group_row

AT_ONCE: Final = 2_000
"""Reports that are folded in one transaction, which the locked path of the group has to wait for."""
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
    """Fold the next reports of a group up to where it was sealed, in a transaction; returns how many."""
    async with driver.transaction():
        record = await driver.fetchrow(sql.LOCK_GROUP, [sealed.trial_id], sealed.group, sealed.summary_id)
        if record is None:
            return 0
        return await fold_tail(driver, group_row(record), up_to=sealed.newest_step, most=AT_ONCE)


async def fold_trial(driver: Any, trial_id: int) -> int:
    """Fold what was appended to a trial before now, on an asyncpg connection outside of a transaction; returns how many
    reports that were."""
    count = 0
    for sealed in await seal(driver, trial_id):
        while folded := await fold_sealed(driver, sealed):
            count += folded
            if folded < AT_ONCE:
                break
    return count
