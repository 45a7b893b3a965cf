"""Fast path through a body: msgpack records of lines in the form that the capture wrapper writes, and nothing else.

Nearly every body is like that, and a training run that prints much sends many. What they have in common is decided per
body instead of per line: one pass, one pattern, no value in between. Anything else about a body, however small, sends
the whole of it the long way (``bodies.py``, ``streams.py``), which knows what to do; both give the same batches.
"""

from __future__ import annotations

import re
from binascii import crc32
from collections.abc import Iterator
from typing import Final

import msgpack  # type: ignore[import-untyped]

from libs.capture.lines import CHECK_BYTES, EndOfStream, decode, stream_of
from libs.events.logs import LogBatch, LogLine
from libs.loglines.cutting import MAX_LINE_BYTES
from libs.loglines.prefixes import MAX_RANK
from services.logs.lines.bodies import MAX_FIELDS, MAX_LIST
from services.logs.lines.streams import LineOrigin, stream_batches

# A line of libs/capture/lines.py with numbers that need no closer look, and the prefixes of libs/loglines/prefixes.py.
_LINE: Final = re.compile(
    rb"([0-9a-f]{8}) ([0-9]{1,18}) ([0-8]?[0-9]{1,18}) "
    rb"(?: ?\[rank=([0-9]{1,10})\] ?)?"
    rb"(?: ?(DEBUG|INFO|WARNING|ERROR|CRITICAL): ?)?"
    rb"([^\n]*)"
)
_LEVELS: Final[dict[bytes | None, str | None]] = {
    None: None,
    **{name.encode(): name for name in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")},
}
# What unpacking raises, and what taking records apart does when they are not what they should be.
_UNUSUAL: Final = (msgpack.exceptions.UnpackException, ValueError, TypeError, LookupError, RecursionError)


def fast_path_batches(body: bytes, origin: LineOrigin) -> Iterator[LogBatch] | None:
    """The batches to publish, in this order; None for a body that has to go the long way."""
    lines: dict[str, list[LogLine]] = {"stdout": [], "stderr": []}
    ends: dict[str, int] = {}
    try:
        if not _read(body, origin, lines, ends):
            return None
    except _UNUSUAL:
        return None
    return stream_batches(lines, ends, origin)


def _read(body: bytes, origin: LineOrigin, lines: dict[str, list[LogLine]], ends: dict[str, int]) -> bool:
    """Fill ``lines`` and ``ends``; False, or one of ``_UNUSUAL`` raised, when the body is not of the usual form."""
    unpacker = msgpack.Unpacker(
        raw=True,
        use_list=False,
        strict_map_key=False,
        max_buffer_size=len(body),
        max_array_len=MAX_LIST,
        max_map_len=MAX_FIELDS,
    )
    unpacker.feed(body)
    node, pod, allocation = origin.node, origin.pod, origin.allocation
    match = _LINE.fullmatch
    path, stdtype, add = None, "", lines["stdout"].append
    for _, fields in unpacker:
        if fields[b"path"] != path:
            path = fields[b"path"]
            stream = stream_of(path.decode()) if isinstance(path, bytes) else None
            if stream is None:
                return False
            stdtype, add = stream[0], lines[stream[0]].append
        raw = fields[b"log"]
        found = match(raw)
        if found is None:
            end = decode(raw)
            if not isinstance(end, EndOfStream):
                return False
            ends[stdtype] = end.seq
            continue
        check, seq, timestamp_ns, rank, level, log = found.groups()
        if int(check, 16) != crc32(raw[CHECK_BYTES:]):
            return False
        rank_id = None if rank is None else int(rank)
        if len(log) > MAX_LINE_BYTES or (rank_id is not None and rank_id > MAX_RANK):
            return False
        add(LogLine(int(seq), int(timestamp_ns), log + b"\n", _LEVELS[level], rank_id, stdtype, node, pod, allocation))
    # The unpacker ends without a word inside a record that is torn.
    return bool(unpacker.tell() == len(body))
