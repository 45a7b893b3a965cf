"""Writes what the log of a task says about lines that are not waited for any longer."""

from __future__ import annotations

from libs.events.logs import LogLine
from services.logs.lines.arrival import Range


def given_up_line(stream: str, gap: Range, *, allocation: str | None, now_ns: int) -> LogLine:
    """The line that stands where those of ``gap`` would stand.

    stream  key of the stream they belong to: ``<allocation>/<pod>/<restart>/<output>``
    """
    container, _, stdtype = stream.rpartition("/")
    pod = container.rpartition("/")[0].rpartition("/")[2] or None
    first, end = gap
    count = end - first
    what = f"line {first} of {stdtype} has" if count == 1 else f"{count} lines of {stdtype}, {first} to {end - 1}, have"
    return LogLine(
        seq=first,
        timestamp_ns=now_ns,
        log=f"{what} not arrived and will be out of order if anything of it still comes\n".encode(),
        level="WARNING",
        stdtype=stdtype or None,
        container_id=pod,
        allocation_id=allocation,
        source="master",
    )
