"""Writes down why allocations wait: the sentence in their rows, and beside them the code of its reason and since when.

A reason goes on when only the numbers of its sentence change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from services.scheduler.plan.decisions import Wait
from services.scheduler.plan.reasons import WaitReason

# Rows that somebody holds are left to the next plan. They are locked in the order of their keys, as everybody locks
# several.
_NOTE: Final = PreparedStatement("""
    WITH free AS (
        SELECT allocation_id FROM allocations
        WHERE allocation_id = ANY(:ids::text[]) AND assigned_at IS NULL
        ORDER BY allocation_id FOR NO KEY UPDATE SKIP LOCKED
    ), noted AS (
        UPDATE allocations a SET wait_reason = :sentence::text FROM free WHERE a.allocation_id = free.allocation_id
        RETURNING a.task_id, a.allocation_id
    )
    INSERT INTO wait_notes (task_id, allocation_id, code, reason, since)
    SELECT task_id, allocation_id, :code::text, :reason::text, :now::timestamptz FROM noted
    ON CONFLICT (task_id, allocation_id) DO UPDATE
    SET code = excluded.code, reason = excluded.reason,
        since = CASE WHEN wait_notes.code = excluded.code THEN wait_notes.since ELSE excluded.since END
""")


async def note_waits(connection: Connection, waits: Sequence[Wait], *, now: datetime) -> None:
    """Write down ``waits``, each of which has a sentence that is not in its row yet."""
    alike: defaultdict[tuple[WaitReason, str], list[str]] = defaultdict(list)
    for wait in waits:
        alike[wait.reason, wait.sentence].append(wait.allocation)
    for (reason, sentence), ids in alike.items():
        await _NOTE.rows(connection, ids=ids, sentence=sentence, code=reason.code, reason=str(reason), now=now)
