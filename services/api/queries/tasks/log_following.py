"""Whole logs, page by page: of a task, of a trial with several tasks, or of a task that still runs.

What a follower has seen when it ends is what a later reader sees: it ends only when the task has ended and everything
that its pods wrote is stored, or some seconds later when that cannot be known (docs/reference/logs.md 4.5, 4.6, 13.10).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import func, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.capture.lines import STREAMS_PER_POD
from libs.clock import Clock
from libs.db.engine import Database
from libs.db.tables.logs import log_streams
from libs.db.tables.tasks import allocations, tasks
from libs.errors import Unavailable
from libs.loglines.batches import SERVICE_STREAM
from libs.waiting import wait_until_set
from services.api.queries.tasks.logs import PAGE_ROWS, LogFilter, LogRow, LogSpan, log_page, log_span

END_GRACE: Final = timedelta(seconds=5)
"""How long a follower waits, after the end of the task, for streams that do not say that they end."""
WAITING_GRACE: Final = timedelta(seconds=60)
"""The same when lines have come that are not shown yet, because they wait for lines before them. They are, once those
come or are given up."""
RECHECK_S: Final = 15.0
"""A notification may be lost; this bounds the harm."""
WAIT_FOR_SEARCH_S: Final = 30.0
_LOOK_AGAIN_AT_END_S: Final = 0.5


def no_more_comes(*, ended_at: datetime | None, sealed: bool, some_wait: bool, now: datetime) -> bool:
    """Whether the log of a task is complete; ``some_wait`` says that lines have come that are not shown yet."""
    grace = WAITING_GRACE if some_wait else END_GRACE
    return ended_at is not None and (sealed or now - ended_at >= grace)


async def streams_sealed(connection: AsyncConnection, task: str) -> bool:
    """Whether everything that the pods of a task wrote is stored.

    All streams known are sealed, those of its pods and what services say about its allocations, and each allocation
    that had pods has as many streams as its pods must have. A pod that was killed seals nothing, and of a task without
    any such stream nothing is known.
    """
    streams = log_streams.c
    counts = or_(streams.contiguous, streams.stream_key.startswith(SERVICE_STREAM, autoescape=True))
    all_sealed = select(func.bool_and(streams.sealed_at.is_not(None))).where(streams.task_id == task, counts)
    if not await connection.scalar(all_sealed):  # NULL without streams
        return False
    parts = allocations.c
    known = (
        select(func.count())
        .select_from(log_streams)
        .where(streams.allocation_id == parts.allocation_id, streams.task_id == task, streams.contiguous)
        .scalar_subquery()
    )
    ran = or_(parts.start_time.is_not(None), func.jsonb_array_length(parts.pods) > 0)
    silent = select(parts.allocation_id).where(parts.task_id == task, ran, known < parts.num_pods * STREAMS_PER_POD)
    return not await connection.scalar(select(silent.exists()))


async def log_is_complete(db: Database, task: str, *, now: datetime) -> bool:
    """Whether no line of the task is to be shown any more; a task that does not exist has no more to say."""
    async with db.read() as connection:
        row = (await connection.execute(select(tasks.c.end_time).where(tasks.c.task_id == task))).one_or_none()
        if row is None:
            return True
        if row.end_time is None:
            return False
        sealed = await streams_sealed(connection, task)
        some_wait = not sealed and await _some_lines_wait(connection, task)
    return no_more_comes(ended_at=row.end_time, sealed=sealed, some_wait=some_wait, now=now)


async def _some_lines_wait(connection: AsyncConnection, task: str) -> bool:
    streams = log_streams.c
    waiting = select(streams.stream_key).where(streams.task_id == task, streams.waits_in.is_not(None))
    return bool(await connection.scalar(select(waiting.exists())))


async def read_logs(
    db: Database, task_ids: Sequence[str], wanted: LogFilter, *, limit: int = 0, descending: bool = False
) -> AsyncIterator[list[LogRow]]:
    """Pages of the lines that are there when a task's turn comes: at most ``limit`` lines of all tasks together.

    task_ids    in the order of their start; read from the last one back when ``descending``
    limit       0 is none

    Each page is a transaction of its own, so that a slow client holds nothing; pages are never empty.
    Raises InvalidRequest as ``log_page`` does.
    """
    remaining = limit
    for task in reversed(task_ids) if descending else task_ids:
        async with db.read() as connection:
            span = await log_span(connection, task)
        beyond: int | None = None
        while span is not None:
            size = min(PAGE_ROWS, remaining) if limit else PAGE_ROWS
            rows = await _page(db, task, wanted, span, beyond=beyond, descending=descending, size=size)
            if rows:
                yield rows
                beyond = rows[-1].id
                remaining -= len(rows)
                if limit and remaining <= 0:
                    return
            if len(rows) < size:
                break


async def follow_logs(
    db: Database, task: str, wanted: LogFilter, *, news: asyncio.Event, clock: Clock
) -> AsyncIterator[list[LogRow]]:
    """Pages of all lines of a task, those to come included; ends when the log is complete.

    news  set by whoever listens to ``subjects.log_stored(task)`` and to the events of the task; cleared here

    Start listening before the first page. Raises InvalidRequest as ``log_page`` does.
    """
    span: LogSpan | None = None
    beyond: int | None = None
    while True:
        news.clear()
        # Before the page: everything stored up to the answer is on the page then.
        complete = await log_is_complete(db, task, now=clock.now())
        if span is None:
            async with db.read() as connection:
                span = await log_span(connection, task)
        rows: list[LogRow] = []
        if span is not None:
            rows = await _page(db, task, wanted, span, beyond=beyond, until_last=False)
        if rows:
            beyond = rows[-1].id
            yield rows
        elif complete:
            return
        else:
            await wait_until_set(news, timeout_s=RECHECK_S if not await _has_ended(db, task) else _LOOK_AGAIN_AT_END_S)


async def _page(
    db: Database,
    task: str,
    wanted: LogFilter,
    span: LogSpan,
    *,
    beyond: int | None,
    descending: bool = False,
    until_last: bool = True,
    size: int = PAGE_ROWS,
) -> list[LogRow]:
    async with _turn(db, wanted), db.transaction() as connection:
        return await log_page(
            connection,
            task,
            wanted,
            span=span,
            beyond=beyond,
            descending=descending,
            until_last=until_last,
            limit=size,
        )


@asynccontextmanager
async def _turn(db: Database, wanted: LogFilter) -> AsyncIterator[None]:
    """Wait, without a connection, until few enough others search by regular expression. Raises Unavailable."""
    if not (wanted.search_text and wanted.search_is_regex):
        yield
        return
    try:
        async with asyncio.timeout(WAIT_FOR_SEARCH_S):
            await db.searches.acquire()
    except TimeoutError as error:
        raise Unavailable("too many searches by regular expression at the same time, try again") from error
    try:
        yield
    finally:
        db.searches.release()


async def _has_ended(db: Database, task: str) -> bool:
    async with db.read() as connection:
        return await connection.scalar(select(tasks.c.end_time).where(tasks.c.task_id == task)) is not None
