"""Reads the logs of a task: pages by id, what to filter by, and whether anything can still come.

The reference's behaviour without its faults (docs/reference/logs.md 4.4, 4.5): descending pages go down, a rank filter
never leaks other tasks, a search is for text and not for wildcards, a broken line does not break the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import ColumnElement, false, func, or_, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.any_of import any_of
from libs.db.engine import driver_connection
from libs.db.tables.logs import log_streams, task_logs
from libs.errors import InvalidRequest
from libs.loglines.message import flat_message, readable
from libs.natural_order.keys import natural_sort_key

PAGE_ROWS: Final = 1000
NO_RANK: Final = -1
"""In a filter by rank: lines without a rank."""
UNSPECIFIED: Final = "UNSPECIFIED"
REGEX_TIME_MS: Final = 10_000
"""Longest time for one page of a search by regular expression."""

CLOCK_SLACK: Final = timedelta(hours=1)
"""How far the clock of the database may step back without hiding lines."""


class LogFilter(Struct, frozen=True, kw_only=True):
    """What to read; each field narrows, an empty one does not. Levels are bare names."""

    allocation_ids: tuple[str, ...] = ()
    agent_ids: tuple[str, ...] = ()
    container_ids: tuple[str, ...] = ()
    rank_ids: tuple[int, ...] = ()
    stdtypes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    """``UNSPECIFIED`` is a line without a level."""
    timestamp_before: datetime | None = None
    """The moment itself is read."""
    timestamp_after: datetime | None = None
    """The moment itself is not read."""
    search_text: str = ""
    """Part of the line, in upper or lower case."""
    search_is_regex: bool = False
    """``search_text`` is a regular expression of PostgreSQL for lines without their newline; case matters."""


class LogRow(Struct, frozen=True, kw_only=True):
    id: int
    task_id: str
    timestamp: datetime | None
    log: bytes
    level: str | None
    rank_id: int | None
    stdtype: str | None
    source: str | None
    agent_id: str | None
    container_id: str | None
    allocation_id: str | None

    @property
    def text(self) -> str:
        """The line as JSON can carry it."""
        return readable(self.log)

    @property
    def message(self) -> str:
        """The one text that clients print."""
        return flat_message(
            timestamp=self.timestamp,
            container_id=self.container_id,
            rank_id=self.rank_id,
            level=self.level,
            log=self.text,
        )


class LogFields(Struct, frozen=True, kw_only=True):
    """The values that occur, each field sorted."""

    allocation_ids: tuple[str, ...] = ()
    agent_ids: tuple[str, ...] = ()
    container_ids: tuple[str, ...] = ()
    rank_ids: tuple[int, ...] = ()
    stdtypes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class LogSpan(Struct, frozen=True, kw_only=True):
    """Where the lines of a task are: in the partitions from ``since`` on, up to ``last_id`` when it was read."""

    since: datetime
    last_id: int


_ROW: Final = tuple(task_logs.c[name] for name in LogRow.__struct_fields__)


async def log_span(connection: AsyncConnection, task: str) -> LogSpan | None:
    """Where the lines of a task are now; None when there are none.

    A read that does not follow ends at ``last_id``, however fast the task writes.
    """
    since = await _written_since(connection, (task,))
    if since is None:
        return None
    lines = task_logs.c
    last_id = await connection.scalar(
        select(lines.id).where(lines.task_id == task, lines.ingested_at >= since).order_by(lines.id.desc()).limit(1)
    )
    return LogSpan(since=since, last_id=last_id) if last_id is not None else None


async def log_page(
    connection: AsyncConnection,
    task: str,
    wanted: LogFilter,
    *,
    span: LogSpan,
    beyond: int | None = None,
    descending: bool = False,
    until_last: bool = True,
    limit: int = PAGE_ROWS,
) -> list[LogRow]:
    """Up to ``limit`` lines of one task in the order of ids; fewer only when there are no more.

    beyond      id of the last line that was read: lines above it, or below it when descending
    until_last  whether to stop at ``span.last_id``; a reader that follows does not

    With a regular expression the connection must be in a transaction, whose statements may take ``REGEX_TIME_MS`` from
    here on. Raises InvalidRequest for an expression that is wrong or takes longer.
    """
    lines = task_logs.c
    query = select(*_ROW).where(lines.task_id == task, lines.ingested_at >= span.since, *conditions(wanted))
    if until_last:
        query = query.where(lines.id <= span.last_id)
    if beyond is not None:
        query = query.where(lines.id < beyond if descending else lines.id > beyond)
    query = query.order_by(lines.id.desc() if descending else lines.id).limit(limit)
    if wanted.search_text and wanted.search_is_regex:
        await connection.execute(text(f"SET LOCAL statement_timeout = {REGEX_TIME_MS}"))
        if not (await driver_connection(connection)).is_in_transaction():
            raise RuntimeError("a search by regular expression without a transaction has no time limit")
    try:
        rows = await connection.execute(query)
    except DBAPIError as error:
        raise _search_error(error) or error from error
    return [LogRow(**row._mapping) for row in rows]


async def count_logs(connection: AsyncConnection, task: str, wanted: LogFilter) -> int:
    """How many lines of a task match now."""
    lines = task_logs.c
    query = select(func.count()).select_from(task_logs).where(lines.task_id == task, *conditions(wanted))
    return await connection.scalar(query) or 0


async def log_fields(connection: AsyncConnection, tasks: Sequence[str]) -> LogFields:
    """The values that occur in the lines of all ``tasks``: what a user may filter by (docs/reference/logs.md 4.8)."""
    lines = task_logs.c
    columns = (
        lines.allocation_id,
        lines.agent_id,
        lines.container_id,
        lines.rank_id,
        lines.stdtype,
        lines.source,
    )
    since = await _written_since(connection, tasks)
    if since is None:
        return LogFields()
    # One pass over the lines for all fields together; their combinations are few.
    found = await connection.execute(
        select(*columns).distinct().where(any_of(lines.task_id, tasks), lines.ingested_at >= since)
    )
    combinations = [tuple(row) for row in found]

    def values(position: int) -> tuple[Any, ...]:
        return tuple(sorted({row[position] for row in combinations} - {None}))

    def names(position: int) -> tuple[str, ...]:
        return tuple(sorted(values(position), key=natural_sort_key))

    return LogFields(
        allocation_ids=names(0),
        agent_ids=names(1),
        container_ids=names(2),
        rank_ids=values(3),
        stdtypes=names(4),
        sources=names(5),
    )


def conditions(wanted: LogFilter) -> list[ColumnElement[bool]]:
    """The filter as conditions that hold all at once. Parentheses are SQLAlchemy's, so no OR escapes."""
    lines = task_logs.c
    members: tuple[tuple[ColumnElement[str | None], tuple[str, ...]], ...] = (
        (lines.allocation_id, wanted.allocation_ids),
        (lines.agent_id, wanted.agent_ids),
        (lines.container_id, wanted.container_ids),
        (lines.stdtype, wanted.stdtypes),
        (lines.source, wanted.sources),
    )
    found: list[ColumnElement[bool]] = [any_of(column, values) for column, values in members if values]
    if wanted.rank_ids:
        ranks = [rank for rank in wanted.rank_ids if rank != NO_RANK]
        without = lines.rank_id.is_(None) if NO_RANK in wanted.rank_ids else false()
        found.append(or_(any_of(lines.rank_id, ranks), without))
    if wanted.levels:
        unspecified = lines.level.is_(None) if UNSPECIFIED in wanted.levels else false()
        found.append(or_(any_of(lines.level, wanted.levels), unspecified))
    if wanted.timestamp_before is not None:
        found.append(lines.timestamp <= wanted.timestamp_before)
    if wanted.timestamp_after is not None:
        found.append(lines.timestamp > wanted.timestamp_after)
    if wanted.search_text:
        found.append(_search(wanted.search_text, is_regex=wanted.search_is_regex))
    return found


async def _written_since(connection: AsyncConnection, task_ids: Sequence[str]) -> datetime | None:
    """A moment before all lines of the tasks, those to come included: spares reading the partitions before it."""
    opened = await connection.scalar(
        select(func.min(log_streams.c.opened_at)).where(any_of(log_streams.c.task_id, task_ids))
    )
    return None if opened is None else opened - CLOCK_SLACK


def _search(wanted: str, *, is_regex: bool) -> ColumnElement[bool]:
    lines = task_logs.c
    # convert_from is reached only for lines that PostgreSQL can hold as text; the others bring their own.
    content: ColumnElement[str] = func.coalesce(lines.searchable, func.convert_from(lines.log, "UTF8"))
    # As in searchable, where NUL is not possible either.
    sought = wanted.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if is_regex:
        # Without the newline, so that $ is the end of what a reader sees.
        return func.rtrim(content, "\n").regexp_match(sought)
    return content.icontains(sought, autoescape=True)


def _search_error(error: DBAPIError) -> InvalidRequest | None:
    state = str(getattr(error.orig, "sqlstate", ""))
    if state == "2201B":
        return InvalidRequest(str(error.orig))  # begins with "invalid regular expression"
    if state == "57014":
        return InvalidRequest("the search by this regular expression takes too long")
    return None
