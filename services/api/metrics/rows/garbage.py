"""Deletes summaries that were replaced, or whose trial is gone: a few thousand rows at a time, of however many
summaries they are, since there may be many rows of one summary, and many summaries of a few rows each."""

from __future__ import annotations

from typing import Any, Final

_AT_ONCE: Final = 5_000
_NEXT: Final = "(SELECT summary_id FROM metric_garbage ORDER BY summary_id LIMIT $1) AS g"
# Rows by their place: joined by their key, so many would be looked for among all rows that there are.
_SOME: Final = f"""
DELETE FROM metric_summaries
 WHERE ctid = ANY(ARRAY(
         SELECT s.place
           FROM {_NEXT}
          CROSS JOIN LATERAL (SELECT ctid AS place FROM metric_summaries WHERE summary_id = g.summary_id LIMIT $1) AS s
          LIMIT $1))
"""  # noqa: S608  (of constants)
_EMPTIED: Final = f"""
DELETE FROM metric_garbage
 WHERE summary_id = ANY(ARRAY(
         SELECT g.summary_id
           FROM {_NEXT}
          WHERE NOT EXISTS (SELECT FROM metric_summaries s WHERE s.summary_id = g.summary_id)))
"""  # noqa: S608  (of constants)


async def delete_garbage(driver: Any) -> bool:
    """Delete the next rows with an asyncpg connection; returns whether there were any: what is left is for the next
    call."""
    status = await driver.execute(_SOME, _AT_ONCE)
    if status == "DELETE 0" and not await driver.fetchval("SELECT EXISTS (SELECT FROM metric_garbage)"):
        return False
    await driver.execute(_EMPTIED, _AT_ONCE)
    return True
