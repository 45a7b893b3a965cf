"""Entries of a checkpoint that lies in a directory which this process can see."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from libs.errors import Unavailable
from services.api.downloads.entries import PIECE_BYTES, ArchiveEntry


def entries_of_directory(directory: Path) -> Iterator[ArchiveEntry]:
    """In a stable order, directories before what is in them.

    Symbolic links to files inside of the directory are sent as those files; others, and special files, are left out.
    Raises OSError for what cannot be read: an archive without it would look whole.
    """
    root = _root(directory)
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
                yield _entry(path.relative_to(directory).as_posix(), path, status, root)


def _root(directory: Path) -> Path:
    """Where the files have to be; a link in place of the directory itself leads to nothing of the checkpoint."""
    return directory.parent.resolve() / directory.name


def _entry(name: str, path: Path, status: os.stat_result, root: Path) -> ArchiveEntry:
    return ArchiveEntry(
        name=name,
        is_directory=stat.S_ISDIR(status.st_mode),
        mode=stat.S_IMODE(status.st_mode),
        changed_at=status.st_mtime,
        size_bytes=status.st_size,
        read=partial(_content, path, status.st_size, root),
    )


def _content(path: Path, size_bytes: int, root: Path) -> Iterator[bytes]:
    """What was there when it was listed: a file that grows is cut, one that shrinks ends the download."""
    left = size_bytes
    with _open_inside(path, root) as file:
        while left and (piece := file.read(min(PIECE_BYTES, left))):
            yield piece
            left -= len(piece)
    if left:
        raise Unavailable(f"{path} was cut while it was read")


def _open_inside(path: Path, root: Path) -> BinaryIO:
    """Tasks write here too: what was a file when it was listed may be a link to one of ours, or a pipe, by now."""
    # Without waiting for a writer, if it is a pipe; regular files know no such mode.
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    if not _is_inside(file, root):
        file.close()
        raise Unavailable(f"{path} was replaced while the checkpoint was read")
    return file


def _is_inside(file: BinaryIO, root: Path) -> bool:
    opened = Path(os.readlink(f"/proc/self/fd/{file.fileno()}"))
    return opened.is_relative_to(root) and stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def _raise(error: OSError) -> None:
    raise error
