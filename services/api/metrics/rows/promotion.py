"""Puts the summary of a trial into rows, which until then was in a column of the trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from services.api.metrics.rows import statements as sql

MOST_NAMES: Final = 20_000
"""Rows that one transaction inserts at most, unless a single trial has more: it holds the locks of a whole batch."""


def next_to_promote(names: Mapping[int, int]) -> list[int]:
    """The trials that one transaction can put into rows, of those whose number of metrics is given; at least one."""
    chosen: list[int] = []
    total = 0
    for trial_id, count in names.items():
        if not chosen or total + count <= MOST_NAMES:
            chosen.append(trial_id)
            total += count
    return chosen


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
