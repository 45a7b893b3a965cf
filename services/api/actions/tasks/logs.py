"""Log lines that clients post: into the stream that the logs service stores from (docs/reference/logs.md 4.2, 4.3).

Each process writes one stream per task, numbered by its monotonic clock, so that lines posted later are numbered later
and nothing has to be remembered. A request that is repeated after a lost answer stores its lines twice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import structlog
from sqlalchemy import select

from libs.bus import Bus
from libs.db.any_of import any_of
from libs.db.engine import Database
from libs.db.tables.tasks import tasks
from libs.errors import NotFound, Unavailable
from libs.events import subjects
from libs.events.logs import LogLine
from libs.loglines.batches import message_id, split_batches
from libs.loglines.posted import legacy_lines, legacy_records, posted_lines

_LEGACY_TRIES: Final = 3
_LEGACY_WAIT_S: Final = 1.0

log = structlog.get_logger(__name__)


async def post_lines(db: Database, bus: Bus, poster: str, records: Sequence[Mapping[str, Any]]) -> None:
    """Hand over the lines of one task; when this returns, they will be stored.

    poster  this process, told apart from all others
    Raises InvalidRequest, NotFound for the task, and Unavailable.
    """
    task, lines = posted_lines(records, first_seq=time.monotonic_ns(), now_ns=time.time_ns())
    if task not in await _known(db, [task]):
        raise NotFound("task", task)
    await _publish(bus, poster, task, lines)


async def post_legacy_lines(db: Database, bus: Bus, poster: str, body: bytes) -> None:
    """Hand over lines of any tasks, from a JSON array of records; those of unknown tasks are dropped.

    Never refuses anything for what it is: its client would block the training process for good. For the same reason
    lines are given up after some tries.
    """
    by_task = legacy_lines(legacy_records(body), first_seq=time.monotonic_ns(), now_ns=time.time_ns())
    known = await _known(db, by_task)
    for task, lines in by_task.items():
        if task not in known:
            log.info("task_logs.unknown_task", task=task, lines=len(lines))
            continue
        for tries_left in reversed(range(_LEGACY_TRIES)):
            try:
                await _publish(bus, poster, task, lines)
                break
            except Unavailable as error:
                log.warning("task_logs.not_taken", task=task, lines=len(lines), error=str(error), tries_left=tries_left)
                await asyncio.sleep(_LEGACY_WAIT_S)


async def _known(db: Database, task_ids: Iterable[str]) -> set[str]:
    async with db.read() as connection:
        found = await connection.execute(select(tasks.c.task_id).where(any_of(tasks.c.task_id, task_ids)))
        return set(found.scalars())


async def _publish(bus: Bus, poster: str, task: str, lines: Sequence[LogLine]) -> None:
    for batch in split_batches(task, f"posted/{poster}/{task}", lines, contiguous=False):
        await bus.publish(subjects.logs(task), msgspec.msgpack.encode(batch), msg_id=message_id(batch))
