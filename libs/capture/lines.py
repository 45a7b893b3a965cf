"""One line of a capture file, as the wrapper in a task container writes it and the log intake reads it.

The wrapper itself is a script without imports of ours (``services/launcher/files/capture.py``); a test holds the two
together. Grammar, without the newline that ends every record::

    text      <check> <seq> <unix_ns> <payload>       payload: any bytes but newline, at most 8191 of them
    control   <check> <seq> <unix_ns>;eos <code>      last record of its stream; code of the task, ``-`` if nobody knows

``check`` is the CRC-32 of all that follows its space, as eight hexadecimal digits: a shipper that takes one file for
another reads from the middle, and a piece of a record must not pass for one.
``seq`` counts the records of one stream from 0 without gaps, the control record included. The sign after the time tells
the two kinds apart, so that nothing a task prints can be taken for the end of its stream.

Source: docs/reference/logs.md 13.2 and 13.10.
"""

from __future__ import annotations

import re
from binascii import crc32
from typing import Final, Literal

from msgspec import Struct

Stream = Literal["stdout", "stderr"]
STREAMS: Final[tuple[Stream, Stream]] = ("stdout", "stderr")
STREAMS_PER_POD: Final = len(STREAMS)

MAX_PAYLOAD_BYTES: Final = 8191

_RECORD: Final = re.compile(rb"([0-9a-f]{8}) (\d{1,20}) (\d{1,20})(?: ([^\n]*)|;eos (-|\d{1,3}))", re.DOTALL)
CHECK_BYTES: Final = 9
"""Of the check and the space behind it."""

_SEGMENT_NAME: Final = re.compile(r"(stdout|stderr)\.(\d+)\.log")


class CapturedLine(Struct, frozen=True):
    """Something the task printed."""

    seq: int
    timestamp_ns: int
    payload: bytes


class EndOfStream(Struct, frozen=True):
    """Nothing follows in this stream; ``seq`` is the number of lines before it."""

    seq: int
    timestamp_ns: int
    exit_code: int | None


def encode_line(seq: int, timestamp_ns: int, payload: bytes) -> bytes:
    """The record of one printed line, with the newline that ends it. ``payload`` must not contain a newline."""
    return _checked(b"%d %d %s" % (seq, timestamp_ns, payload))


def encode_end(seq: int, timestamp_ns: int, exit_code: int | None) -> bytes:
    """The last record of a stream, with the newline that ends it."""
    code = b"-" if exit_code is None else b"%d" % exit_code
    return _checked(b"%d %d;eos %s" % (seq, timestamp_ns, code))


def decode(raw: bytes) -> CapturedLine | EndOfStream | None:
    """Read one record, with or without its newline; None when it is not one, or only a piece."""
    record = raw[:-1] if raw.endswith(b"\n") else raw
    found = _RECORD.fullmatch(record)
    if found is None or int(found[1], 16) != crc32(record[CHECK_BYTES:]):
        return None
    _, seq, timestamp_ns, payload, code = found.groups()
    if code is not None:
        return EndOfStream(int(seq), int(timestamp_ns), None if code == b"-" else int(code))
    return CapturedLine(int(seq), int(timestamp_ns), payload)


def _checked(rest: bytes) -> bytes:
    return b"%08x %s\n" % (crc32(rest), rest)


def segment_name(stream: Stream, segment: int) -> str:
    """File name of the ``segment``-th part of a stream: ``stdout.0.log``."""
    return f"{stream}.{segment}.log"


def stream_of(path: str) -> tuple[Stream, int] | None:
    """Stream and segment number that the name of a capture file tells; None for other files."""
    found = _SEGMENT_NAME.fullmatch(path.rsplit("/", 1)[-1])
    if found is None:
        return None
    return ("stdout" if found[1] == "stdout" else "stderr"), int(found[2])
