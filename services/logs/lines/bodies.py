"""Reads bodies of fluent-bit's http output, in every format it has, into records (docs/reference/logs.md 13.7).

Nothing is refused: what cannot be read comes back as it came, because a refusal makes fluent-bit throw a chunk away.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgpack  # type: ignore[import-untyped]
import msgspec
from msgspec import Struct


class Shipped(NamedTuple):
    """One record: a line of a file, without its newline."""

    log: bytes
    path: str
    offset: int | None
    """Byte position of the line in its file, if fluent-bit was told to say so."""


class Unreadable(NamedTuple):
    """Part of a body that is no record, byte for byte."""

    raw: bytes


_JSON_STARTS: Final = b"[{"
_BLANK: Final = b" \t\r\n"
# Lists have two elements. A larger one is an attack: the unpacker would allocate whatever length a header claims.
MAX_LIST: Final = 16
MAX_FIELDS: Final = 1024
_MAX_OFFSET: Final = 2**62


def records_of(body: bytes) -> Iterator[Shipped | Unreadable]:
    """The records of a body, in order, whatever the format: the first byte tells JSON and msgpack apart.

    msgpack is taken byte for byte; in JSON fluent-bit has replaced what is not UTF-8 before it comes here.
    """
    start = body.lstrip(_BLANK)[:1]
    if not start:
        return iter(())
    return _json_records(body) if start in _JSON_STARTS else _msgpack_records(body)


def _msgpack_records(body: bytes) -> Iterator[Shipped | Unreadable]:
    """``[time, record]`` or ``[[time, metadata], record]``, one after the other."""
    unpacker = msgpack.Unpacker(
        raw=True,
        strict_map_key=False,
        max_buffer_size=len(body),
        max_array_len=MAX_LIST,
        max_map_len=MAX_FIELDS,
    )
    unpacker.feed(body)
    taken = read = 0  # between the two lies what was understood, and is no record
    while True:
        try:
            event = unpacker.unpack()
        except (msgpack.exceptions.UnpackException, ValueError, TypeError, RecursionError):
            break  # at the end, inside a torn record, or before something that is not msgpack
        begin, read = read, unpacker.tell()
        shipped = _shipped_bytes(event[1]) if isinstance(event, list) and len(event) == 2 else None
        if shipped is not None:
            if taken < begin:
                yield Unreadable(body[taken:begin])
            yield shipped
            taken = read
    if taken < len(body):
        yield Unreadable(body[taken:])


def _shipped_bytes(fields: Any) -> Shipped | None:
    if not isinstance(fields, dict):
        return None
    log, path, offset = fields.get(b"log"), fields.get(b"path", b""), fields.get(b"offset")
    if not isinstance(log, bytes) or not isinstance(path, bytes):
        return None
    return Shipped(log, path.decode("utf-8", "replace"), _offset(offset))


class _JsonRecord(Struct):
    log: str
    path: str = ""
    offset: int | None = None


_ARRAY: Final = msgspec.json.Decoder(list[_JsonRecord])
_LINES: Final = msgspec.json.Decoder(_JsonRecord)


def _json_records(body: bytes) -> Iterator[Shipped | Unreadable]:
    """An array, an object per line, or objects one after the other."""
    try:
        found = _ARRAY.decode(body) if body.lstrip(_BLANK).startswith(b"[") else _LINES.decode_lines(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _odd_json_records(body)
    return (Shipped(record.log.encode(), record.path, _offset(record.offset)) for record in found)


def _odd_json_records(body: bytes) -> Iterator[Shipped | Unreadable]:
    """The same, slowly and with patience: any separators, control characters, broken UTF-8, records without a line."""
    text = body.decode("utf-8", "surrogateescape")
    decoder = json.JSONDecoder(strict=False)
    position = 0
    while True:
        while position < len(text) and text[position] in " \t\r\n,":
            position += 1
        if position == len(text):
            return
        try:
            thing, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            yield Unreadable(_raw(text[position:]))
            return
        if isinstance(thing, dict) and isinstance(thing.get("logs"), list):
            thing = thing["logs"]
        if isinstance(thing, list):
            for item in thing:
                yield _shipped_text(item) or Unreadable(_raw(json.dumps(item)))
        else:
            yield _shipped_text(thing) or Unreadable(_raw(text[position:end]))
        position = end


def _shipped_text(fields: Any) -> Shipped | None:
    if not isinstance(fields, dict) or not isinstance(fields.get("log"), str):
        return None
    return Shipped(_raw(fields["log"]), str(fields.get("path", "")), _offset(fields.get("offset")))


def _raw(text: str) -> bytes:
    """The bytes that were decoded with surrogateescape; surrogates of other origin cannot be kept."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _offset(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < _MAX_OFFSET else None
