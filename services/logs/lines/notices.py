"""Writes what the log of a task says about lines that are not waited for any longer."""

from __future__ import annotations

from libs.events.logs import LogLine
from services.logs.lines.arrival import Range


def given_up_line(stream: str, gap: Range, *, allocation: str | None, now_ns: int) -> LogLine:
    """The line that stands where those of ``gap`` would stand.

    stream  key of the stream they belong to: ``<allocation>/<pod>/<restart>/<output>``
    """
    stdtype = stream.rpartition("/")[2]
    first, end = gap
    count = end - first
    what = f"line {first} of {stdtype} has" if count == 1 else f"{count} lines of {stdtype}, {first} to {end - 1}, have"
    text = f"{what} not arrived and will be out of order if anything of it still comes"
    return _notice(stream, first, text, allocation=allocation, now_ns=now_ns)


def unended_line(stream: str, next_seq: int, *, allocation: str | None, now_ns: int) -> LogLine:
    """The line that stands at the end of a stream of which nobody knows how many lines it had.

    stream, next_seq  its key, and the number that its next line would have
    """
    stdtype = stream.rpartition("/")[2]
    text = f"{stdtype} broke off here; lines from number {next_seq} on, if there were any, are lost"
    return _notice(stream, next_seq, text, allocation=allocation, now_ns=now_ns)


def _notice(stream: str, seq: int, text: str, *, allocation: str | None, now_ns: int) -> LogLine:
    container, _, stdtype = stream.rpartition("/")
    return LogLine(
        seq=seq,
        timestamp_ns=now_ns,
        log=f"{text}\n".encode(),
        level="WARNING",
        stdtype=stdtype or None,
        container_id=container.rpartition("/")[0].rpartition("/")[2] or None,
        allocation_id=allocation,
        source="master",
    )
