"""Deletes what charts keep of trials (libs/db/tables/metrics.py), which may be gigabytes: some of it at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

CHUNKS_AT_ONCE: Final = 500
"""Each has 30 kB."""
TRIALS_AT_ONCE: Final = 20
"""Whose chunks are sorted for each part, and whose groups get another generation: deletions of experiments give many
trials, and would do both for all that is left with every part."""
_SOME: Final = text(
    "SELECT DISTINCT trial_id FROM metric_levels WHERE trial_id = ANY(:trials) ORDER BY trial_id LIMIT :at_once"
)
# Whoever is making chunks stores them of the generation that it began with, or not at all: none behind those that are
# deleted now.
_GENERATION: Final = text(
    "UPDATE metric_levels SET generation = nextval('metric_generations') WHERE trial_id = ANY(:trials)"
)
# From the end of each series, so that what is left of one is what it begins with, as whoever reads it relies on.
_CHUNKS: Final = text("""
DELETE FROM metric_chunks
 WHERE (trial_id, metric_group, name_key, chunk_no) IN (
       SELECT trial_id, metric_group, name_key, chunk_no
         FROM metric_chunks
        WHERE trial_id = ANY(:trials)
        ORDER BY chunk_no DESC
        LIMIT :at_once)
""")
_LEVELS: Final = text("DELETE FROM metric_levels WHERE trial_id = ANY(:trials)")


async def delete_some_levels(connection: AsyncConnection, trial_ids: Sequence[int]) -> bool:
    """Delete a part of the levels of these trials, in a transaction; returns whether there is more, for another one.

    Series can be read in between. What somebody makes of their reports meanwhile is deleted with the last of it.
    """
    asked = {"trials": trial_ids, "at_once": TRIALS_AT_ONCE}
    trials = (await connection.execute(_SOME, asked)).scalars().all()
    if not trials:
        return False
    await connection.execute(_GENERATION, {"trials": trials})
    some = {"trials": trials, "at_once": CHUNKS_AT_ONCE}
    if (await connection.execute(_CHUNKS, some)).rowcount >= CHUNKS_AT_ONCE:
        return True
    await connection.execute(_LEVELS, {"trials": trials})
    return len(trials) == TRIALS_AT_ONCE
