"""Decides what of an arriving batch is new: nothing twice, nothing lost, in order as long as that can be waited for.

fluent-bit delivers at least once, and in any order after any failure (docs/reference/logs.md 13.8, 13.9, 13.11). A
stream therefore remembers how far it has come and which parts before that are missing. A batch that is ahead waits for
its predecessors; when they are given up, it is stored nevertheless, and they are taken whenever they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from libs.events.logs import LogBatch, LogLine

Range = tuple[int, int]
"""First and end: ``(2, 5)`` is 2, 3, 4."""

SERVICE_GAPS: Final = 256
"""Gaps that a stream of a service remembers. Their numbers are drawn from a sequence for all, so that nearly every
line leaves one, and none of them is older than the last few messages."""


class StreamPosition(Struct, frozen=True):
    """How far a stream has come."""

    next_seq: int = 0
    """Everything below is stored, except what is missing."""
    missing: tuple[Range, ...] = ()
    """Given up: ascending, disjoint, all below ``next_seq``; every one is remembered until it comes."""
    end_seq: int | None = None
    """Number of lines of the stream, once it is known."""
    seen_seq: int = 0
    """Everything that is known to exist is below."""

    @property
    def waits(self) -> bool:
        """Whether something before what has come, or before the end, has not come."""
        return self.seen_seq > self.next_seq

    @property
    def is_complete(self) -> bool:
        """Whether every line up to the end of the stream is stored."""
        return self.end_seq is not None and self.end_seq <= self.next_seq and not self.missing


class Advance(Struct, frozen=True):
    position: StreamPosition
    lines: tuple[LogLine, ...]
    """To store, in this order."""
    ahead: tuple[LogBatch, ...]
    """What waits for lines before it, ascending."""


def extent(batch: LogBatch) -> Range:
    """The part of its stream that a batch stands for; a batch that only ends its stream stands for an empty one."""
    if batch.lines:
        return batch.lines[0].seq, batch.lines[-1].seq + 1
    end = batch.end_seq or 0
    return end, end


def admit(position: StreamPosition, part: Range) -> tuple[StreamPosition, tuple[Range, ...]]:
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
    next_seq = max(position.next_seq, end, first)
    after = msgspec.structs.replace(
        position, next_seq=next_seq, missing=tuple(missing), seen_seq=max(position.seen_seq, next_seq)
    )
    return after, tuple(new)


def advance(position: StreamPosition, batches: Iterable[LogBatch]) -> Advance:
    """Store what can be stored now of batches of a contiguous stream, which may repeat one another in any way."""
    waiting = sorted(batches, key=extent)
    for batch in waiting:
        position = _told_of(position, batch)
    lines: list[LogLine] = []
    for index, batch in enumerate(waiting):
        part = extent(batch)
        if part[0] > position.next_seq:
            ahead = tuple(batch for batch in waiting[index:] if batch.lines)
            return Advance(position, tuple(lines), ahead)
        position, new = admit(position, part)
        lines.extend(_within(batch.lines, new))
    return Advance(position, tuple(lines), ())


def advance_service(position: StreamPosition, batches: Iterable[LogBatch]) -> Advance:
    """Store batches of a stream in which gaps mean nothing: at once, in the order of delivery."""
    lines: list[LogLine] = []
    for batch in batches:
        position, new = admit(position, extent(batch))
        position = msgspec.structs.replace(position, missing=position.missing[-SERVICE_GAPS:])
        lines.extend(_within(batch.lines, new))
    return Advance(position, tuple(lines), ())


def give_up(position: StreamPosition, until: int) -> StreamPosition:
    """Go on at ``until``, which is beyond the next line, without what is before it."""
    after, _ = admit(position, (until, until))
    return after


def _told_of(position: StreamPosition, batch: LogBatch) -> StreamPosition:
    """What the mere existence of a batch says; kept even while the batch itself waits."""
    _, end = extent(batch)
    end_seq = position.end_seq
    if batch.end_of_stream:
        end_seq = max(end, end_seq or 0)
    return msgspec.structs.replace(position, end_seq=end_seq, seen_seq=max(position.seen_seq, end))


def _within(lines: Sequence[LogLine], ranges: Sequence[Range]) -> Sequence[LogLine]:
    if not ranges or not lines:
        return ()
    if len(ranges) == 1 and ranges[0] == (lines[0].seq, lines[-1].seq + 1):
        return lines
    return [line for line in lines if any(first <= line.seq < end for first, end in ranges)]
