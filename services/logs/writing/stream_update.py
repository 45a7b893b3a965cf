"""Updates one stream in one transaction: decides what of the arriving and the parked batches can be stored now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from libs.events.logs import LogBatch, LogLine
from libs.loglines.batches import is_end_of_writer
from libs.loglines.message import nanoseconds_of
from services.logs.lines.arrival import StreamPosition, advance, advance_service, extent, give_up
from services.logs.lines.notices import given_up_line, unended_line
from services.logs.writing.parking import TAKEN_AT_ONCE, head_of, park, take_ready


class Stream(Struct, frozen=True, kw_only=True):
    """A row of ``log_streams``."""

    key: str
    task: str
    allocation: str | None
    contiguous: bool
    position: StreamPosition = StreamPosition()
    waits_since: datetime | None = None
    parked_bytes: int = 0


class StreamUpdate(Struct, frozen=True, kw_only=True):
    """A stream after one transaction, and what that stores."""

    stream: Stream
    lines: tuple[LogLine, ...]
    """To store, in this order."""
    has_ended: bool
    given_up: int
    """Gaps that are not waited for any longer."""
    lines_given_up: int
    """Lines in them."""
    is_unended: bool
    """It has ended now, and nobody knows with how many lines."""
    unparked: int
    """Batches that were read from where they waited."""
    is_unfinished: bool
    """There is more of them, which another transaction should take."""


class StreamLimits(Struct, frozen=True, kw_only=True):
    overdue_before: datetime | None
    """Gaps that nothing has come for since then are given up; None gives up none for its age."""
    parked_bytes: int
    """How much of a stream may wait; beyond it the first gap is given up."""
    unparked: int
    """How many batches may be read that wait; a few more come along."""


async def update_stream(
    driver: Any, stream: Stream, arriving: Sequence[LogBatch], *, limits: StreamLimits, now: datetime
) -> StreamUpdate:
    """Store what can be, keep the rest waiting."""
    if not stream.contiguous:
        return _update_service_stream(stream, arriving)
    return await _StreamUpdater(driver, stream, limits, now).run(arriving)


def _update_service_stream(stream: Stream, arriving: Sequence[LogBatch]) -> StreamUpdate:
    done = advance_service(stream.position, sorted(arriving, key=extent))
    return StreamUpdate(
        stream=msgspec.structs.replace(stream, position=done.position),
        lines=done.lines,
        has_ended=any(batch.end_of_stream for batch in arriving),
        given_up=0,
        lines_given_up=0,
        is_unended=False,
        unparked=0,
        is_unfinished=False,
    )


class _StreamUpdater:
    """The work on one contiguous stream."""

    def __init__(self, driver: Any, stream: Stream, limits: StreamLimits, now: datetime) -> None:
        self._driver = driver
        self._stream = stream
        self._limits = limits
        self._now = now
        self._position = stream.position
        self._parked_bytes = stream.parked_bytes
        self._ahead: tuple[LogBatch, ...] = ()
        self._lines: list[LogLine] = []
        self._given_up = self._lines_given_up = self._unparked = 0

    async def run(self, arriving: Sequence[LogBatch]) -> StreamUpdate:
        self._advance(arriving)
        while self._may_unpark() and (await self._unpark() or await self._give_up()):
            pass
        is_unended = self._stream.position.end_seq is None and self._ends_unknown(arriving)
        if is_unended:
            self._lines.append(
                unended_line(
                    self._stream.key,
                    self._position.next_seq,
                    allocation=self._stream.allocation,
                    now_ns=nanoseconds_of(self._now),
                )
            )
        is_unfinished = self._unparked >= self._limits.unparked and self._waits()
        had_holes_filled = await self._park()
        progressed = self._position.next_seq > self._stream.position.next_seq or had_holes_filled
        return StreamUpdate(
            stream=msgspec.structs.replace(
                self._stream,
                position=self._position,
                waits_since=self._waits_since(progressed=progressed and not is_unfinished),
                parked_bytes=self._parked_bytes,
            ),
            lines=tuple(self._lines),
            has_ended=self._position.is_complete,
            given_up=self._given_up,
            lines_given_up=self._lines_given_up,
            is_unended=is_unended,
            unparked=self._unparked,
            is_unfinished=is_unfinished,
        )

    def _ends_unknown(self, arriving: Sequence[LogBatch]) -> bool:
        """Whether somebody says that nobody writes any more, and nobody how many lines there are."""
        ends = [batch for batch in arriving if batch.end_of_stream]
        return bool(ends) and all(is_end_of_writer(batch) and batch.end_seq is None for batch in ends)

    def _advance(self, batches: Sequence[LogBatch]) -> None:
        done = advance(self._position, (*self._ahead, *batches))
        self._position, self._ahead = done.position, done.ahead
        self._lines.extend(done.lines)

    def _waits(self) -> bool:
        return self._position.waits or self._parked_bytes > 0

    def _may_unpark(self) -> bool:
        return self._waits() and self._unparked < self._limits.unparked

    async def _unpark(self) -> bool:
        """Take what waits and can be stored now; False when nothing can."""
        ready = await take_ready(self._driver, self._stream.key, self._position.next_seq, limit=TAKEN_AT_ONCE)
        self._parked_bytes -= ready.size_bytes
        self._unparked += len(ready.batches)
        self._advance(ready.batches)
        return bool(ready.batches)

    async def _give_up(self) -> bool:
        """Go on behind the first gap if it has lasted too long or too much waits for it; False when it has not."""
        until = await self._end_of_lost_gap()
        if until is None:
            return False
        gap = (self._position.next_seq, until)
        self._position = give_up(self._position, until)
        self._lines.append(
            given_up_line(self._stream.key, gap, allocation=self._stream.allocation, now_ns=nanoseconds_of(self._now))
        )
        self._given_up += 1
        self._lines_given_up += until - gap[0]
        self._advance(())
        return True

    async def _end_of_lost_gap(self) -> int | None:
        head = await head_of(self._driver, self._stream.key)
        firsts = [extent(batch)[0] for batch in self._ahead[:1]] + ([head.first_seq] if head else [])
        if self._parked_bytes > self._limits.parked_bytes and firsts:
            return min(firsts)
        since, before = self._stream.waits_since, self._limits.overdue_before
        if since is None or before is None or since > before:
            return None
        if not firsts:
            return self._position.seen_seq if self._position.waits else None
        # What has come only now shows a gap that may be young.
        is_old = head is not None and head.first_seq == min(firsts) and head.parked_at <= before
        return min(firsts) if is_old else None

    async def _park(self) -> bool:
        """Keep what is ahead; True when something of it is from before what had been seen."""
        added = await park(self._driver, self._stream.key, self._ahead, now=self._now)
        self._parked_bytes += sum(size for _, size in added)
        return any(extent(batch)[0] < self._stream.position.seen_seq for batch, _ in added)

    def _waits_since(self, *, progressed: bool) -> datetime | None:
        if not self._position.waits:
            return None
        return self._now if progressed or self._stream.waits_since is None else self._stream.waits_since
