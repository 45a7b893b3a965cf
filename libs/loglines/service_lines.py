"""Lines in which services tell the owner of a task about its allocation, as part of the log
(docs/reference/logs.md 3)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from libs.events.logs import LogBatch, LogLine
from libs.loglines.batches import service_stream


def service_line(text: str, *, seq: int, at: datetime, level: str = "INFO") -> LogLine:
    """One line; ``text`` has no newline."""
    return LogLine(
        seq=seq,
        timestamp_ns=int(at.timestamp() * 1_000_000) * 1_000,
        log=f"{text}\n".encode(),
        level=level,
        stdtype="stdout",
        source="master",
    )


def service_batch(lines: Iterable[LogLine], *, task: str, allocation: str, is_end: bool = False) -> LogBatch:
    """Lines with growing numbers; with ``is_end`` nothing more follows in the stream of the allocation.

    The lines name the allocation, unlike the reference's, so that a filter by allocation finds them.
    """
    return LogBatch(
        task=task,
        stream=service_stream(allocation),
        allocation=allocation,
        lines=tuple(msgspec.structs.replace(line, allocation_id=allocation) for line in lines),
        end_of_stream=is_end,
        contiguous=False,
    )
