"""Entries as one stream: tar, tar.gz or zip, made while it is sent and never held whole.

Tensors hardly get smaller, and somebody waits: what a sample says is not worth it is sent as it is, inside of the same
formats. Source: docs/reference/experiments.md 10.3; POSIX pax; RFC 1951 and 1952; APPNOTE.TXT 4.4.4 (zip with data
descriptors).
"""

from __future__ import annotations

import io
import tarfile
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final

from services.api.downloads.entries import PIECE_BYTES, ArchiveEntry

_BLOCK: Final = 512
"""Of tar: everything fills whole ones."""
_COMPRESSED: Final = 3
_STORED: Final = 0
_SAMPLE_BYTES: Final = 16 * 1024
_WORTH_IT: Final = 0.8
"""The part of a sample that may be left when it is compressed."""
_GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # deflate, no name, no time, unknown system
_GZIP_SIZE_MODULUS: Final = 1 << 32
_EMPTY_LAST_BLOCK: Final = b"\x03\x00"
_RAW_DEFLATE: Final = -15


class Format(Enum):
    """What a client can ask for, by media type."""

    TGZ = "application/gzip"
    TAR = "application/x-tar"
    ZIP = "application/zip"


def choose_format(accept: str) -> Format | None:
    """The first format of an Accept header that we have; tar for anything goes, None when none will do."""
    for part in accept.split(",") if accept.strip() else ["*/*"]:
        wanted = part.partition(";")[0].strip().lower()
        if wanted in ("*/*", "application/*"):
            return Format.TAR
        for form in Format:
            if wanted == form.value:
                return form
    return None


def archive(entries: Iterable[ArchiveEntry], form: Format) -> Iterator[bytes]:
    """The archive in pieces of about PIECE_BYTES."""
    match form:
        case Format.TAR:
            pieces = _tar(entries)
        case Format.TGZ:
            pieces = _gzip(_gathered(_tar(entries)))
        case Format.ZIP:
            pieces = _zip(entries)
    return _gathered(pieces)


def _tar(entries: Iterable[ArchiveEntry]) -> Iterator[bytes]:
    for entry in entries:
        info = tarfile.TarInfo(entry.name)
        info.mode, info.mtime = entry.mode, int(entry.changed_at)
        if entry.is_directory:
            info.type = tarfile.DIRTYPE
            yield info.tobuf(tarfile.PAX_FORMAT)
            continue
        info.size = entry.size_bytes
        yield info.tobuf(tarfile.PAX_FORMAT)
        yield from entry.read()
        yield bytes(-entry.size_bytes % _BLOCK)
    yield bytes(2 * _BLOCK)


def _gzip(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """One member, each piece of which ends at a whole byte, so that the next may be compressed in another way."""
    yield _GZIP_HEADER
    checksum = size = 0
    for piece in pieces:
        checksum, size = zlib.crc32(piece, checksum), size + len(piece)
        compressor = zlib.compressobj(_level_for(piece), zlib.DEFLATED, _RAW_DEFLATE)
        yield compressor.compress(piece) + compressor.flush(zlib.Z_FULL_FLUSH)
    yield _EMPTY_LAST_BLOCK + checksum.to_bytes(4, "little") + (size % _GZIP_SIZE_MODULUS).to_bytes(4, "little")


def _level_for(piece: bytes) -> int:
    """From the middle, for headers at the start say little of what follows."""
    start = max(0, (len(piece) - _SAMPLE_BYTES) // 2)
    sample = piece[start : start + _SAMPLE_BYTES]
    return _COMPRESSED if len(zlib.compress(sample, 1)) <= _WORTH_IT * len(sample) else _STORED


def _zip(entries: Iterable[ArchiveEntry]) -> Iterator[bytes]:
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", allowZip64=True) as target:
        for entry in entries:
            moment = max(time.gmtime(entry.changed_at)[:6], (1980, 1, 1, 0, 0, 0))  # zip knows nothing older
            info = zipfile.ZipInfo(f"{entry.name}/" if entry.is_directory else entry.name, moment)
            info.external_attr = entry.mode << 16
            info.compress_type = zipfile.ZIP_STORED if entry.is_directory else zipfile.ZIP_DEFLATED
            content = iter(()) if entry.is_directory else entry.read()
            first = next(content, b"")
            # Deflate that compresses nothing, not ZIP_STORED: readers of streams find its end.
            info._compresslevel = _level_for(first)  # type: ignore[attr-defined]  # public only from Python 3.13 on
            with target.open(info, "w", force_zip64=not entry.is_directory) as file:
                file.write(first)
                yield sink.take()
                for piece in content:
                    file.write(piece)
                    yield sink.take()
            yield sink.take()
    yield sink.take()


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in fewer pieces."""
    buffer = bytearray()
    for piece in pieces:
        if not buffer and len(piece) >= PIECE_BYTES:
            yield piece
            continue
        buffer += piece
        if len(buffer) >= PIECE_BYTES:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)


class _Sink(io.RawIOBase):
    """Takes what ``zipfile`` writes until somebody fetches it; cannot seek, so sizes come after the contents."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:  # type: ignore[override]
        self._buffer += data
        return len(data)

    def take(self) -> bytes:
        """Everything since the last time."""
        taken = bytes(self._buffer)
        self._buffer.clear()
        return taken
