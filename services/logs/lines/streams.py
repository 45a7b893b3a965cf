"""Puts the records of one request into batches of their streams, with the identity that the token vouches for.

A stream is what one container wrote to one of its outputs: ``<allocation>/<pod>/<restart>/<stdout or stderr>``. The
allocation comes from the token and leads the key, so that no task can write into the streams of another.
Source: docs/reference/logs.md 13.9.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from libs.capture.lines import CapturedLine, EndOfStream, decode, stream_of
from libs.events.logs import LogBatch, LogLine
from libs.loglines.batches import container_key, split_batches
from libs.loglines.cutting import pieces, truncated
from libs.loglines.prefixes import split_prefixes
from services.logs.lines.bodies import Shipped, Unreadable

UNPARSED: Final = b"[unparsed] "
"""Begins every line that was not in the form the capture wrapper writes."""
_MAX_SEQ: Final = 2**62
_MAX_RAW_LINE: Final = 32 * 1024


class LineOrigin(Struct, frozen=True, kw_only=True):
    task: str
    allocation: str
    pod: str
    node: str | None
    restart: int = 0

    @property
    def key(self) -> str:
        return container_key(self.allocation, self.pod, self.restart)


def batches_of(
    records: Iterable[Shipped | Unreadable], origin: LineOrigin, *, body: bytes, now_ns: int
) -> Iterator[LogBatch]:
    """The batches to publish, in this order; a body that is sent again gives the same lines the same numbers.

    What is in a capture file and no whole record was read from the middle of one, and is left out.

    body    what the records were read from; names the stream of what could not be read
    now_ns  the time of lines that bear none
    """
    lines: dict[str, list[LogLine]] = {"stdout": [], "stderr": []}
    ends: dict[str, int] = {}
    odd: list[Shipped] = []
    garbage: list[bytes] = []
    for record in records:
        if isinstance(record, Unreadable):
            garbage.append(record.raw)
            continue
        stream = stream_of(record.path)
        captured = decode(record.log) if stream else None
        if stream is not None and captured is None:
            continue  # a piece of a record is no line: the whole of it comes too, or its number is missed
        if stream is None or captured is None or _is_out_of_range(captured):
            if record.offset is None or not record.path:
                garbage.append(record.log)
            else:
                odd.append(record)
        elif isinstance(captured, EndOfStream):
            ends[stream[0]] = captured.seq
        else:
            lines[stream[0]].append(_line(captured, stream[0], origin))
    yield from stream_batches(lines, ends, origin)
    yield from _odd_files(odd, origin, now_ns)
    if garbage:
        yield from _garbage(garbage, hashlib.sha256(body).hexdigest()[:16], origin, now_ns)


def _is_out_of_range(captured: CapturedLine | EndOfStream) -> bool:
    return captured.seq >= _MAX_SEQ or captured.timestamp_ns >= _MAX_SEQ * 2


def stream_batches(
    lines: Mapping[str, list[LogLine]], ends: Mapping[str, int], origin: LineOrigin
) -> Iterator[LogBatch]:
    """The batches of the two outputs; ``lines`` and ``ends`` (numbers of lines) by output, as they were read."""
    for stdtype, found in lines.items():
        yield from _stream(f"{origin.key}/{stdtype}", found, ends.get(stdtype), origin)


def _line(captured: CapturedLine, stdtype: str, origin: LineOrigin) -> LogLine:
    rank_id, level, log = split_prefixes(captured.payload)
    return LogLine(
        seq=captured.seq,
        timestamp_ns=captured.timestamp_ns,
        log=truncated(log) + b"\n",
        level=level,
        rank_id=rank_id,
        stdtype=stdtype,
        agent_id=origin.node,
        container_id=origin.pod,
        allocation_id=origin.allocation,
    )


def _stream(key: str, lines: list[LogLine], end_seq: int | None, origin: LineOrigin) -> Iterator[LogBatch]:
    """Batches without gaps inside, ascending: segments may have been read in another order than written."""
    for run in _runs(lines):
        is_last = run[-1].seq + 1 == end_seq
        yield from split_batches(
            origin.task, key, run, allocation=origin.allocation, end_seq=end_seq if is_last else None
        )
        if is_last:
            return
    if end_seq is not None:  # it came without the lines just before it
        yield from split_batches(origin.task, key, (), allocation=origin.allocation, end_seq=end_seq)


def _runs(lines: list[LogLine]) -> list[list[LogLine]]:
    if lines and [line.seq for line in lines] == list(range(lines[0].seq, lines[0].seq + len(lines))):
        return [lines]  # as nearly always
    runs: list[list[LogLine]] = []
    previous = None
    for line in sorted(lines, key=lambda line: line.seq):
        if previous is None or line.seq > previous + 1:
            runs.append([])
        elif line.seq == previous:
            continue  # a file that was read twice
        runs[-1].append(line)
        previous = line.seq
    return runs


def _odd_files(records: list[Shipped], origin: LineOrigin, now_ns: int) -> Iterator[LogBatch]:
    """Lines of files that the wrapper did not write: known again by their position in the file."""
    by_path: dict[str, list[Shipped]] = {}
    for record in records:
        by_path.setdefault(record.path, []).append(record)
    for path, found in by_path.items():
        name = hashlib.sha256(path.encode()).hexdigest()[:16]
        lines = [
            _unparsed(record.offset or 0, record.log, origin, now_ns)
            for record in sorted(found, key=lambda record: record.offset or 0)
        ]
        yield from split_batches(
            origin.task, f"{origin.key}/raw/{name}", lines, allocation=origin.allocation, contiguous=False
        )


def _garbage(raws: list[bytes], name: str, origin: LineOrigin, now_ns: int) -> Iterator[LogBatch]:
    """What is no record at all, as a stream of its own that is complete with it: the same bytes, the same stream."""
    parts = [part for raw in raws for line in raw.splitlines() or [raw] for part in pieces(line, _MAX_RAW_LINE)]
    lines = [_unparsed(seq, part, origin, now_ns) for seq, part in enumerate(parts)]
    yield from split_batches(
        origin.task, f"{origin.key}/raw/{name}", lines, allocation=origin.allocation, contiguous=False
    )


def _unparsed(seq: int, raw: bytes, origin: LineOrigin, now_ns: int) -> LogLine:
    return LogLine(
        seq=seq,
        timestamp_ns=now_ns,
        log=UNPARSED + truncated(raw) + b"\n",
        agent_id=origin.node,
        container_id=origin.pod,
        allocation_id=origin.allocation,
    )
