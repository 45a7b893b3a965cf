"""Rows of ``task_logs``: what they say about lines, and the order in which those of several streams were written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter

from libs.events.logs import LogLine
from libs.loglines.message import readable


def in_order_of_time(streams: Sequence[Sequence[LogLine]]) -> Sequence[LogLine]:
    """One sequence of the lines of several streams: by time, and never against the order within a stream.

    A clock that steps back in the middle of a stream does not reorder it.
    """
    if len(streams) == 1:
        return streams[0]
    stamped = [item for stream in streams for item in _not_before(stream)]
    stamped.sort(key=itemgetter(0))  # keeps the order of what it finds equal
    return [line for _, line in stamped]


def _not_before(stream: Sequence[LogLine]) -> Iterator[tuple[int, LogLine]]:
    latest = 0
    for line in stream:
        latest = max(latest, line.timestamp_ns)
        yield latest, line


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
