"""Lines to rows of ``task_logs``, lines of several streams in the order in which they were written."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from libs.events.logs import LogLine
from libs.loglines.message import moment_of, readable
from libs.loglines.prefixes import MAX_RANK

COLUMNS: Final = (
    "task_id",
    "ingested_at",
    "timestamp",
    "log",
    "searchable",
    "level",
    "rank_id",
    "stdtype",
    "source",
    "agent_id",
    "container_id",
    "allocation_id",
)


def in_order_of_time(streams: Sequence[Sequence[LogLine]]) -> Iterable[LogLine]:
    """One sequence of the lines of several streams: by time, and never against the order within a stream.

    A clock that steps back in the middle of a stream does not reorder it.
    """
    if len(streams) == 1:
        return streams[0]
    stamped = (_not_before(stream) for stream in streams)
    return (line for _, line in heapq.merge(*stamped, key=lambda item: item[0]))


def _not_before(stream: Sequence[LogLine]) -> Iterator[tuple[int, LogLine]]:
    latest = 0
    for line in stream:
        latest = max(latest, line.timestamp_ns)
        yield latest, line


def row_of(task: str, line: LogLine, ingested_at: datetime) -> tuple[Any, ...]:
    """Values of ``COLUMNS``, all of which PostgreSQL can hold whatever the line says."""
    rank_id = line.rank_id
    return (
        task,
        ingested_at,
        moment_of(line.timestamp_ns),
        line.log,
        searchable(line.log),
        _text(line.level),
        rank_id if rank_id is None or -MAX_RANK <= rank_id <= MAX_RANK else None,
        _text(line.stdtype),
        _text(line.source),
        _text(line.agent_id),
        _text(line.container_id),
        _text(line.allocation_id),
    )


def searchable(log: bytes) -> str | None:
    """What a search looks at instead of ``log``: None for text that PostgreSQL can convert, as nearly all lines are."""
    if b"\0" not in log:
        if log.isascii():
            return None
        try:
            log.decode()
            return None
        except UnicodeDecodeError:
            pass
    return readable(log).replace("\0", "\N{REPLACEMENT CHARACTER}")


def _text(value: str | None) -> str | None:
    return value.replace("\0", "") if value and "\0" in value else value
