"""Entries of a checkpoint that lies in a directory which this process can see."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from libs.errors import Unavailable
from services.api.downloads.entries import PIECE_BYTES, ArchiveEntry


def entries_of_directory(directory: Path) -> Iterator[ArchiveEntry]:
    """In a stable order, directories before what is in them.

    Symbolic links to files inside of the directory are sent as those files; others, and special files, are left out.
    Raises OSError for what cannot be read: an archive without it would look whole.
    """
    root = directory.resolve()
    for current, folders, files in os.walk(directory, onerror=_raise):
        folders[:] = sorted(folder for folder in folders if not (Path(current) / folder).is_symlink())
        for name in [*folders, *sorted(files)]:
            path = Path(current) / name
            try:
                status = path.stat()
            except FileNotFoundError:
                continue  # a dangling link, or deleted while we look
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                continue
            if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
                yield _entry(path.relative_to(directory).as_posix(), path, status)


def _entry(name: str, path: Path, status: os.stat_result) -> ArchiveEntry:
    return ArchiveEntry(
        name=name,
        is_directory=stat.S_ISDIR(status.st_mode),
        mode=stat.S_IMODE(status.st_mode),
        changed_at=status.st_mtime,
        size_bytes=status.st_size,
        read=partial(_content, path, status.st_size),
    )


def _content(path: Path, size_bytes: int) -> Iterator[bytes]:
    """What was there when it was listed: a file that grows is cut, one that shrinks ends the download."""
    left = size_bytes
    with path.open("rb") as file:
        while left and (piece := file.read(min(PIECE_BYTES, left))):
            yield piece
            left -= len(piece)
    if left:
        raise Unavailable(f"{path} was cut while it was read")


def _raise(error: OSError) -> None:
    raise error
