"""What of an arriving batch is new: nothing twice, nothing lost, in order as far as waiting a little can make it so.

fluent-bit delivers at least once, and out of order after any failure, as does a bus (spec/logs.md 13.8, 13.9). A
stream therefore remembers how far it has come and which parts before that are missing. A batch that is ahead is parked
for a while; when its predecessors do not come, it is stored nevertheless, and they are taken whenever they come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from libs.events.logs import LogBatch, LogLine

Range = tuple[int, int]
"""First and end: ``(2, 5)`` is 2, 3, 4."""

MAX_MISSING: Final = 256
"""Gaps that a stream remembers; when there are more, the oldest are given up."""
MAX_PARKED: Final = 64
"""Batches of one stream that wait; when there are more, waiting is over."""


class Position(Struct, frozen=True):
    next_seq: int = 0
    missing: tuple[Range, ...] = ()
    """Ascending, disjoint, all below ``next_seq``."""


class Arrival(Struct, frozen=True, kw_only=True):
    position: Position
    lines: tuple[LogLine, ...]
    """To store, in this order."""
    parked: tuple[LogBatch, ...]
    """To keep for later; whatever else was parked is done."""
    sealed: bool
    """The end of the stream is among what is done."""


def extent(batch: LogBatch) -> Range:
    """The part of its stream that a batch stands for; a batch that only ends its stream stands for an empty one."""
    if batch.lines:
        return batch.lines[0].seq, batch.lines[-1].seq + 1
    end = batch.end_seq or 0
    return end, end


def admit(position: Position, part: Range) -> tuple[Position, tuple[Range, ...]]:
    """Position after ``part`` is stored, and what of ``part`` is new."""
    first, end = part
    new: list[Range] = []
    missing: list[Range] = []
    for gap_first, gap_end in position.missing:
        overlap = (max(gap_first, first), min(gap_end, end))
        if overlap[0] >= overlap[1]:
            missing.append((gap_first, gap_end))
            continue
        new.append(overlap)
        missing.extend(rest for rest in ((gap_first, overlap[0]), (overlap[1], gap_end)) if rest[0] < rest[1])
    if first > position.next_seq:
        missing.append((position.next_seq, first))
    if end > max(position.next_seq, first):
        new.append((max(position.next_seq, first), end))
    after = Position(max(position.next_seq, end, first), tuple(missing[-MAX_MISSING:]))
    return after, tuple(new)


def arrive(
    position: Position, arriving: Sequence[LogBatch], *, parked: Sequence[LogBatch] = (), overdue: bool = False
) -> Arrival:
    """Take batches of one stream in.

    arriving  in the order of delivery; batches may repeat one another in any way
    parked    what waits already
    overdue   something has waited long enough: nothing waits any longer

    Batches of a stream that is not contiguous never wait.
    """
    lines: list[LogLine] = []
    sealed = False
    waiting: dict[int, LogBatch] = {}
    for batch in (*parked, *arriving):
        first, end = extent(batch)
        known = waiting.get(first)
        if known is None or (end, batch.end_of_stream) > (extent(known)[1], known.end_of_stream):
            waiting[first] = batch
    while waiting:
        first = min(waiting)
        batch = waiting[first]
        ahead = batch.contiguous and first > position.next_seq
        if ahead and not overdue and len(waiting) <= MAX_PARKED:
            break
        position, new = admit(position, extent(batch))
        lines.extend(_within(batch.lines, new))
        sealed = sealed or batch.end_of_stream
        del waiting[first]
    return Arrival(
        position=position, lines=tuple(lines), parked=tuple(waiting[first] for first in sorted(waiting)), sealed=sealed
    )


def _within(lines: Sequence[LogLine], ranges: Sequence[Range]) -> Sequence[LogLine]:
    if not ranges or not lines:
        return ()
    if len(ranges) == 1 and ranges[0] == (lines[0].seq, lines[-1].seq + 1):
        return lines
    return [line for line in lines if any(first <= line.seq < end for first, end in ranges)]
