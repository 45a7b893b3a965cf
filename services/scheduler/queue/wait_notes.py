"""Writes down why allocations wait: the sentence in their rows, and beside them the code of its reason and since when.

A reason goes on when only the numbers of its sentence change.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from services.scheduler.plan.decisions import Wait

# Rows that somebody holds are left to the next plan. They are locked in the order of their keys, as everybody locks
# several.
_NOTE: Final = PreparedStatement("""
    WITH free AS (
        SELECT allocation_id FROM allocations
        WHERE allocation_id = ANY(:ids::text[]) AND assigned_at IS NULL
        ORDER BY allocation_id FOR NO KEY UPDATE SKIP LOCKED
    ), noted AS (
        UPDATE allocations a SET wait_reason = w.sentence
        FROM free JOIN unnest(:ids::text[], :sentences::text[], :codes::text[], :reasons::text[])
            AS w (allocation_id, sentence, code, reason) USING (allocation_id)
        WHERE a.allocation_id = free.allocation_id
        RETURNING a.task_id, a.allocation_id, w.code, w.reason
    )
    INSERT INTO wait_notes (task_id, allocation_id, code, reason, since)
    SELECT task_id, allocation_id, code, reason, :now::timestamptz FROM noted
    ON CONFLICT (task_id, allocation_id) DO UPDATE
    SET code = excluded.code, reason = excluded.reason,
        since = CASE WHEN wait_notes.code = excluded.code THEN wait_notes.since ELSE excluded.since END
""")


async def note_waits(connection: Connection, waits: Sequence[Wait], *, now: datetime) -> None:
    """Write down ``waits``, at most one of an allocation, each with a sentence that is not in its row yet.

    It is one statement, however many sentences there are: those with the numbers of limits differ from user to user.
    """
    if waits:
        await _NOTE.rows(
            connection,
            ids=[wait.allocation for wait in waits],
            sentences=[wait.sentence for wait in waits],
            codes=[wait.reason.code for wait in waits],
            reasons=[str(wait.reason) for wait in waits],
            now=now,
        )
