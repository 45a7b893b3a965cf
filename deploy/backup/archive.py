"""The file of a backup: a compressed tar of sections, each in parts of some megabytes, so that nothing is held whole.

It begins with what was backed up and ends with how much that was. A file without its end is not used.
"""

from __future__ import annotations

import itertools
import os
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from libs.errors import InvalidRequest

PART_BYTES: Final = 8 * 2**20
_FORMAT: Final = 1
_BEGIN: Final = "backup.json"
_END: Final = "complete.json"

_Part = TypeVar("_Part", bound=Struct)


class BackupContent(Struct, frozen=True, kw_only=True):
    """What was backed up."""

    format: int = _FORMAT
    taken_at: str
    release: str
    schema: str
    """Revision of the database."""


class BackupCounts(Struct, frozen=True, kw_only=True):
    """How much was backed up: messages by stream, rows by table."""

    messages: dict[str, int]
    rows: dict[str, int]


class Section:
    """Bytes that go into the archive in parts."""

    def __init__(self, archive: tarfile.TarFile, name: str) -> None:
        self._archive = archive
        self._name = name
        self._waiting = bytearray()
        self._parts = 0

    def write(self, data: bytes) -> None:
        self._waiting += data
        if len(self._waiting) >= PART_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            self._parts += 1
            _add(self._archive, f"{self._name}/{self._parts:06}", bytes(self._waiting))
            self._waiting.clear()


class ArchiveWriter:
    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive

    @contextmanager
    def section(self, name: str) -> Iterator[Section]:
        section = Section(self._archive, name)
        yield section
        section.flush()

    def end(self, counts: BackupCounts) -> None:
        _add(self._archive, _END, msgspec.json.encode(counts))


@contextmanager
def write_archive(path: Path, content: BackupContent) -> Iterator[ArchiveWriter]:
    """A new archive at ``path``, readable for its owner only, and there once it is whole."""
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        with (
            open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file,
            tarfile.open(fileobj=file, mode="w|gz") as archive,
        ):
            _add(archive, _BEGIN, msgspec.json.encode(content))
            yield ArchiveWriter(archive)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def examine_archive(path: Path) -> tuple[BackupContent, BackupCounts]:
    """What is in an archive, all of which has been read. Raises InvalidRequest for one that cannot be used."""
    content, counts = None, None
    for name, parts in read_sections(path):
        if name == _BEGIN:
            content = _decode(b"".join(parts), BackupContent)
        elif name == _END:
            counts = _decode(b"".join(parts), BackupCounts)
        else:
            for _ in parts:
                pass
    if content is None or content.format != _FORMAT:
        raise InvalidRequest(f"{path} is no backup that this release can read")
    if counts is None:
        raise InvalidRequest(f"{path} is not whole: its end is missing")
    return content, counts


def read_sections(path: Path) -> Iterator[tuple[str, Iterable[bytes]]]:
    """The sections in order, each with its parts; read the parts before the next section. Raises InvalidRequest."""
    with _explained(path), tarfile.open(path, mode="r|gz") as archive:
        for name, members in itertools.groupby(archive, key=lambda member: member.name.rpartition("/")[0]):
            if name:
                yield name, _parts(path, archive, members)
            else:
                yield from ((member.name, _parts(path, archive, [member])) for member in members)


def _parts(path: Path, archive: tarfile.TarFile, members: Iterable[tarfile.TarInfo]) -> Iterator[bytes]:
    with _explained(path):  # whoever reads the parts, it is not read_sections that is running then
        for member in members:
            yield _content(archive, member)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise InvalidRequest(f"{path} cannot be read: {error}") from error


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, BytesIO(content))


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return b"" if file is None else file.read()


def _decode(content: bytes, kind: type[_Part]) -> _Part:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"this is no backup that this release can read: {error}") from error
