"""Log batches on their way from the intake (or from a service that has something to say) to the writer.

Encoded as msgpack: log lines are bytes, and need not be text.
"""

from __future__ import annotations

from msgspec import Struct


class LogLine(Struct, frozen=True, array_like=True, gc=False):
    seq: int
    """Position in its stream, growing; what a writer has seen before it drops."""
    timestamp_ns: int
    """Unix time of the write."""
    log: bytes
    """The line without rank and level prefix, ending in a newline."""
    level: str | None = None
    """Bare name: ``INFO``, ``ERROR``, ..."""
    rank_id: int | None = None
    stdtype: str | None = None
    agent_id: str | None = None
    container_id: str | None = None
    allocation_id: str | None = None
    source: str = "task"


class LogBatch(Struct, frozen=True, kw_only=True, tag_field="type", tag="log.batch"):
    """Lines of one stream of one task, in order. Stored exactly once, however often it is delivered."""

    task: str
    stream: str
    """Key of the stream, unique over all tasks, e.g. ``<pod>/<restart>/stdout`` or ``sys/<allocation>``."""
    lines: tuple[LogLine, ...]
    allocation: str | None = None
    """The allocation whose stream it is; None for streams of services."""
    end_of_stream: bool = False
    end_seq: int | None = None
    """With ``end_of_stream``: the number of lines of the stream, so that an end that overtakes lines is noticed."""
    contiguous: bool = True
    """False when gaps in ``seq`` mean nothing, as in streams that services write."""
