"""Batches of log lines that fit into one message of the bus, and the ids that make them recognisable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from libs.events.logs import LogBatch, LogLine

MAX_BATCH_BYTES: Final = 512 * 1024
"""Aimed at; a batch exceeds it by one line at most. A message of NATS may have 1 MiB (docs/reference/logs.md 13.9)."""
_LINE_OVERHEAD: Final = 64
"""Generous for the numbers, the short words and the framing of a line."""


SERVICE_STREAM: Final = "sys/"
"""Prefix of the streams in which services speak about an allocation."""


def service_stream(allocation: str) -> str:
    """Key of the stream in which the scheduler speaks about an allocation.

    Its last batch should say ``end_of_stream``: readers that follow wait for it, or for some seconds.
    """
    return SERVICE_STREAM + allocation


def launcher_stream(allocation: str) -> str:
    """Key of the stream in which the launcher speaks about an allocation; its numbers have gaps."""
    return f"k8s/{allocation}"


def container_key(allocation: str, pod: str, restart: int = 0) -> str:
    """What the keys of the streams of a container begin with; ``/stdout`` or ``/stderr`` follows."""
    return f"{allocation}/{pod}/{restart}"


def end_of_writer(task: str, allocation: str, stream: str, *, printed: int | None = None) -> LogBatch:
    """Says that nobody is left who could write to a stream of a container.

    printed  number of lines that it has; None where nobody can say how many
    """
    return LogBatch(task=task, stream=stream, lines=(), allocation=allocation, end_of_stream=True, end_seq=printed)


def is_end_of_writer(batch: LogBatch) -> bool:
    """Whether a batch does nothing but end its stream."""
    return batch.end_of_stream and not batch.lines


def split_batches(
    task: str,
    stream: str,
    lines: Sequence[LogLine],
    *,
    allocation: str | None = None,
    end_seq: int | None = None,
    contiguous: bool = True,
    limit_bytes: int = MAX_BATCH_BYTES,
) -> Iterator[LogBatch]:
    """The lines of one stream, in order, as batches for publication in this order.

    lines    ascending by ``seq``; no line longer than ``cutting.MAX_LINE_BYTES``
    end_seq  given when the stream ends here: the number of its lines. The last batch, maybe one without lines, says so.
    """
    parts = list(_parts(lines, limit_bytes))
    if end_seq is not None and not parts:
        parts.append(())
    for index, part in enumerate(parts):
        ends = end_seq is not None and index == len(parts) - 1
        yield LogBatch(
            task=task,
            stream=stream,
            lines=part,
            allocation=allocation,
            contiguous=contiguous,
            end_of_stream=ends,
            end_seq=end_seq if ends else None,
        )


def _parts(lines: Sequence[LogLine], limit_bytes: int) -> Iterator[tuple[LogLine, ...]]:
    part: list[LogLine] = []
    size = 0
    for line in lines:
        line_bytes = _encoded_size(line)
        if part and size + line_bytes > limit_bytes:
            yield tuple(part)
            part, size = [], 0
        part.append(line)
        size += line_bytes
    if part:
        yield tuple(part)


def message_id(batch: LogBatch) -> str:
    """``Nats-Msg-Id``: the same for the same lines only.

    Both ends are in it: a shipper that was restarted may send the same first line with more lines behind it, and the
    bus would take that for a copy.
    """
    first = batch.lines[0].seq if batch.lines else ""
    last = batch.lines[-1].seq if batch.lines else ""
    end = "" if not batch.end_of_stream else "." if batch.lines or batch.end_seq is None else f".{batch.end_seq}"
    return f"{batch.stream}:{first}-{last}{end}"


def _encoded_size(line: LogLine) -> int:
    # Plain, because it runs for every line there is.
    size = len(line.log) + _LINE_OVERHEAD
    if line.agent_id:
        size += len(line.agent_id)
    if line.container_id:
        size += len(line.container_id)
    if line.allocation_id:
        size += len(line.allocation_id)
    return size
