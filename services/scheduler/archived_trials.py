"""Counts the trials of archived experiments, so that totals of lists of runs, which leave them out, count none.

Triggers tell of which experiments the number may have changed (``archived_trial_changes``). Readers count the trials of
these, and take the sums of all others: that is exact in every snapshot. Here they are counted for good. One statement
takes what is told, counts, and writes the sums, all of one snapshot: what is committed later is told later.

A trigger of trials tells nothing of an experiment that it sees unarchived still, and whoever archives it meanwhile sees
no trial that is not committed. So experiments are counted only when all who were writing as they were told have ended:
until then they stay told.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import text

from libs.db.engine import Database

AT_ONCE: Final = 1000
"""Experiments that are counted in one transaction."""

_SOME: Final = text("SELECT EXISTS (SELECT FROM archived_trial_changes)")
# Whoever began to write before has a smaller number than this transaction, which has none before it finds a row: it
# begins with this statement, and the planner does not ask for what is set.
_SEE: Final = text(
    "UPDATE archived_trial_changes SET seen_by = pg_current_xact_id()::text::bigint WHERE seen_by IS NULL"
)
# A number that is yet to come is of another server, out of a backup.
_SEE_ANEW: Final = text(
    "UPDATE archived_trial_changes SET seen_by = NULL WHERE seen_by > pg_current_xact_id()::text::bigint"
)
# Two that count at once would replace the same numbers twice.
_ALONE: Final = text("LOCK TABLE archived_trial_changes IN SHARE UPDATE EXCLUSIVE MODE")
_COUNT: Final = text("""
    WITH settled AS (
      SELECT experiment_id FROM archived_trial_changes GROUP BY experiment_id
      HAVING bool_and(seen_by IS NOT NULL AND seen_by <= pg_snapshot_xmin(pg_current_snapshot())::text::bigint)
       LIMIT :most
    ), told AS (
      DELETE FROM archived_trial_changes WHERE experiment_id IN (SELECT experiment_id FROM settled)
    ), former AS (
      DELETE FROM archived_trial_numbers WHERE experiment_id IN (SELECT experiment_id FROM settled)
      RETURNING project_id, state, archived, -number AS number
    ), present AS (
      INSERT INTO archived_trial_numbers (experiment_id, project_id, state, archived, number)
      SELECT t.experiment_id, t.project_id, t.state, t.archived, count(*)
        FROM settled JOIN experiments e ON e.id = settled.experiment_id JOIN trials t ON t.experiment_id = e.id
       WHERE e.archived GROUP BY 1, 2, 3, 4
      RETURNING project_id, state, archived, number
    ), summed AS (
      INSERT INTO archived_trial_counts (project_id, state, archived, number)
      SELECT project_id, state, archived, sum(number)
        FROM (SELECT * FROM former UNION ALL SELECT * FROM present) AS changes
       GROUP BY project_id, state, archived HAVING sum(number) <> 0
    )
    SELECT count(*) FROM settled
""")


async def count_archived(db: Database) -> None:
    """Count what was told, but for what was told a moment ago: that is for the next time."""
    async with db.read() as connection:
        if not await connection.scalar(_SOME):
            return
    while await _count_some(db) == AT_ONCE:
        pass
    async with db.transaction() as connection:
        await connection.execute(_SEE)
        await connection.execute(_SEE_ANEW)


async def _count_some(db: Database) -> int:
    async with db.transaction() as connection:
        await connection.execute(_ALONE)
        return int(await connection.scalar(_COUNT, {"most": AT_ONCE}) or 0)
