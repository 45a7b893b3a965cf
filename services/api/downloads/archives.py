"""A directory as one stream: tar, tar.gz or zip, made while it is sent and never held whole.

Source: docs/reference/experiments.md 10.3; POSIX pax; APPNOTE.TXT 4.4.4 (zip with data descriptors).
"""

from __future__ import annotations

import io
import os
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Final

CHUNK_BYTES: Final = 1024 * 1024
_BLOCK: Final = tarfile.BLOCKSIZE
_GZIP_HEADER: Final = 31
_COMPRESSION: Final = 3  # tensors hardly get smaller, and somebody waits


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


def archive(directory: Path, form: Format) -> Iterator[bytes]:
    """The archive in pieces of about CHUNK_BYTES; paths in it are relative to ``directory``, in a stable order.

    Symbolic links to files inside of the directory are sent as those files; others, and special files, are left out.
    """
    match form:
        case Format.TAR:
            pieces = _tar(directory)
        case Format.TGZ:
            pieces = _gzip(_tar(directory))
        case Format.ZIP:
            pieces = _zip(directory)
    return _gathered(pieces)


def _entries(directory: Path) -> Iterator[tuple[str, Path, os.stat_result]]:
    """Relative path, path and status of everything to send: directories before what is in them."""
    root = directory.resolve()
    for current, folders, files in os.walk(directory):
        folders[:] = sorted(folder for folder in folders if not (Path(current) / folder).is_symlink())
        for name in [*folders, *sorted(files)]:
            path = Path(current) / name
            try:
                status = path.stat()
            except OSError:
                continue  # a dangling link, or deleted while we look
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                continue
            if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
                yield path.relative_to(directory).as_posix(), path, status


def _tar(directory: Path) -> Iterator[bytes]:
    for name, path, status in _entries(directory):
        info = tarfile.TarInfo(name)
        info.mode, info.mtime = stat.S_IMODE(status.st_mode), int(status.st_mtime)
        if stat.S_ISDIR(status.st_mode):
            info.type = tarfile.DIRTYPE
            yield info.tobuf(tarfile.PAX_FORMAT)
            continue
        info.size = status.st_size
        yield info.tobuf(tarfile.PAX_FORMAT)
        # The size is promised: a file that shrinks meanwhile is filled up, one that grows is cut.
        sent = 0
        for chunk in _content(path, status.st_size):
            sent += len(chunk)
            yield chunk
        missing = status.st_size - sent
        while missing > 0:
            yield bytes(min(missing, CHUNK_BYTES))
            missing -= CHUNK_BYTES
        yield bytes(-status.st_size % _BLOCK)
    yield bytes(2 * _BLOCK)


def _gzip(pieces: Iterator[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(level=_COMPRESSION, wbits=_GZIP_HEADER)
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()


def _zip(directory: Path) -> Iterator[bytes]:
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", allowZip64=True) as target:
        for name, path, status in _entries(directory):
            moment = max(time.gmtime(status.st_mtime)[:6], (1980, 1, 1, 0, 0, 0))  # zip knows nothing older
            is_directory = stat.S_ISDIR(status.st_mode)
            info = zipfile.ZipInfo(f"{name}/" if is_directory else name, moment)
            info.external_attr = status.st_mode << 16
            info.compress_type = zipfile.ZIP_STORED if is_directory else zipfile.ZIP_DEFLATED
            with target.open(info, "w", force_zip64=not is_directory) as entry:
                for chunk in () if is_directory else _content(path, None):
                    entry.write(chunk)
                    yield sink.take()
            yield sink.take()
    yield sink.take()


def _content(path: Path, limit: int | None) -> Iterator[bytes]:
    left = limit
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES if left is None else min(CHUNK_BYTES, left)):
            yield chunk
            left = None if left is None else left - len(chunk)


def _gathered(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes in fewer pieces."""
    buffer = bytearray()
    for piece in pieces:
        buffer += piece
        if len(buffer) >= CHUNK_BYTES:
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
