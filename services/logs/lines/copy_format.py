"""Encodes lines as the bytes that ``COPY task_logs FROM STDIN (FORMAT binary)`` takes.

Nearly all of a row is what the row before it said as well, so a row is made of a beginning that many share, the time
and the line. A tuple per line, of which the driver encodes each value, costs several times as much.
Source: PostgreSQL manual, COPY, "Binary Format"; its binary forms of timestamptz (microseconds since 2000) and integer.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from libs.events.logs import LogLine
from libs.loglines.prefixes import MAX_RANK
from services.logs.lines.rows import searchable

COLUMNS: Final = (
    "task_id",
    "ingested_at",
    "level",
    "rank_id",
    "stdtype",
    "source",
    "agent_id",
    "container_id",
    "allocation_id",
    "timestamp",
    "log",
    "searchable",
)
SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER: Final = b"\xff\xff"
PIECE_BYTES: Final = 256 * 1024

_NULL: Final = b"\xff\xff\xff\xff"
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH_US: Final = (_EPOCH - datetime(1970, 1, 1, tzinfo=UTC)) // _MICROSECOND
_MOMENT: Final = struct.Struct(">iq")
_MOMENT_AND_LENGTH: Final = struct.Struct(">iqi")
_INTEGER: Final = struct.Struct(">ii")
_LENGTH: Final = struct.Struct(">i")


def rows_of(task: str, lines: Iterable[LogLine], ingested_at: datetime) -> Iterator[bytes]:
    """The rows of one task's lines, in pieces of about ``PIECE_BYTES`` that belong between SIGNATURE and TRAILER.

    PostgreSQL can hold all of them, whatever the lines say.
    """
    start = struct.pack(">h", len(COLUMNS)) + _text(task) + _MOMENT.pack(8, (ingested_at - _EPOCH) // _MICROSECOND)
    beginnings: dict[tuple[object, ...], bytes] = {}
    pack = _MOMENT_AND_LENGTH.pack
    parts: list[bytes] = []
    size = 0
    for line in lines:
        said = (
            line.level,
            line.rank_id,
            line.stdtype,
            line.source,
            line.agent_id,
            line.container_id,
            line.allocation_id,
        )
        beginning = beginnings.get(said)
        if beginning is None:
            beginning = beginnings[said] = start + _who_and_how(line)
        log = line.log
        end = _NULL if log.isascii() and b"\0" not in log else _text(searchable(log))
        parts += (beginning, pack(8, line.timestamp_ns // 1000 - _EPOCH_US, len(log)), log, end)
        size += len(log) + len(beginning)
        if size > PIECE_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


def _who_and_how(line: LogLine) -> bytes:
    rank_id = line.rank_id
    return b"".join(
        (
            _text(line.level),
            _NULL if rank_id is None or not -MAX_RANK <= rank_id <= MAX_RANK else _INTEGER.pack(4, rank_id),
            _text(line.stdtype),
            _text(line.source),
            _text(line.agent_id),
            _text(line.container_id),
            _text(line.allocation_id),
        )
    )


def _text(value: str | None) -> bytes:
    if value is None:
        return _NULL
    encoded = value.replace("\0", "").encode()
    return _LENGTH.pack(len(encoded)) + encoded
