"""Deletes summaries that were replaced, or whose trial is gone: a few rows at a time, since there may be many."""

from __future__ import annotations

from typing import Any, Final

_AT_ONCE: Final = 5_000
_SOME: Final = """
DELETE FROM metric_summaries s
 USING (SELECT summary_id, name_key
          FROM metric_summaries
         WHERE summary_id = (SELECT summary_id FROM metric_garbage ORDER BY summary_id LIMIT 1)
         LIMIT $1) AS gone
 WHERE s.summary_id = gone.summary_id AND s.name_key = gone.name_key
"""
_EMPTIED: Final = """
DELETE FROM metric_garbage g
 WHERE NOT EXISTS (SELECT FROM metric_summaries s WHERE s.summary_id = g.summary_id)
"""


async def delete_garbage(driver: Any) -> bool:
    """Delete the next rows with an asyncpg connection; returns whether there were any: what is left is for the next
    call."""
    status = await driver.execute(_SOME, _AT_ONCE)
    if status == "DELETE 0" and not await driver.fetchval("SELECT EXISTS (SELECT FROM metric_garbage)"):
        return False
    await driver.execute(_EMPTIED)
    return True
