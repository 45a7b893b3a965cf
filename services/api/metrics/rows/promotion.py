"""Puts the summary of a trial into rows, which until then was in a column of the trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from services.api.metrics.rows import statements as sql


async def promote(driver: Any, trial_ids: Sequence[int]) -> None:
    """Keep the summaries of trials in rows from now on, in the transaction of the caller, who has locked the trials.

    Their column has to be true, and stays as it is. Does nothing else to a trial, so its next report of each group
    takes the locked path.
    """
    ids = list(trial_ids)
    # What is left of an earlier time in rows, before a service of another release took the trial back.
    await driver.execute(sql.FORGET_GROUPS, ids)
    await driver.execute(sql.GROUPS_OF_COLUMN, ids)
    await driver.execute(sql.SUMMARIES_OF_COLUMN, ids)
    await driver.execute(sql.KEEP_IN_ROWS, ids)
