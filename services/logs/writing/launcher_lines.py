"""Rejects lines that a launcher may not write: it speaks about tasks of its own pool only, and in its own stream only.

Of the streams of a task's containers it may say that nobody writes them any more, for it sees containers end.

A launcher may publish on ``logs.*.*.<its pool>`` and nowhere else, so the subject is proof of the pool that speaks.
That the task is in that pool, the database knows. Everything else on the stream comes from services that are trusted.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Final

import structlog

from libs.db.connecting.pool import DriverPool
from libs.events import subjects
from libs.events.logs import LogBatch
from libs.loglines.batches import is_end_of_writer, launcher_stream

log = structlog.get_logger()

Said = tuple[str, LogBatch]
"""Subject and batch."""

_TOKENS: Final = 4
"""Of the subjects on which launchers speak; others have fewer."""
_ALLOCATIONS: Final = "SELECT allocation_id, task_id, pool FROM allocations WHERE allocation_id = ANY($1)"


async def reject_foreign_lines(db: DriverPool, said: Sequence[Said]) -> list[LogBatch]:
    """The batches, in order, without those in which a launcher speaks about what is not its own."""
    speaking = {batch.allocation for subject, batch in said if _is_launchers(subject)}
    authorised = await _authorised(db, speaking - {None}) if speaking else set()
    taken = []
    for subject, batch in said:
        if _is_launchers(subject) and (subject, batch.task, _spoken_in(batch)) not in authorised:
            log.warning("logs.foreign_lines_rejected", subject=subject, task=batch.task, stream=batch.stream)
        else:
            taken.append(batch)
    return taken


async def _authorised(db: DriverPool, speaking: Set[str | None]) -> set[tuple[str, str, str]]:
    """Subject, task and stream of what launchers may say about these allocations."""
    async with db.read() as connection:
        rows = await connection.fetch(_ALLOCATIONS, list(speaking))
    return {
        (subjects.logs_of_launcher(pool, task), task, launcher_stream(allocation)) for allocation, task, pool in rows
    }


def _spoken_in(batch: LogBatch) -> str:
    """The stream that decides who may say this."""
    allocation = batch.allocation or ""
    is_its_containers = is_end_of_writer(batch) and batch.stream.startswith(f"{allocation}/")
    return launcher_stream(allocation) if is_its_containers else batch.stream


def _is_launchers(subject: str) -> bool:
    return subject.count(".") + 1 >= _TOKENS
