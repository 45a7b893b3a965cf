"""Packs uploaded files into the archive that tasks unpack: a tar.gz with modes, times, directories and symbolic links.

The same files give the same bytes. Source: docs/reference/experiments.md 11; POSIX pax for names of any length.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import tarfile
from collections.abc import Sequence
from typing import Final

from libs.errors import InvalidRequest
from services.api.contexts.links import below_a_link, leads_out
from services.api.wire.experiments.model_definitions import File

MAX_CONTEXT_BYTES: Final = 96 * 1024 * 1024
"""Of all contents together; clients refuse to send more than 95 MiB."""
MAX_FILES: Final = 200_000
MAX_LINKS: Final = 5_000
MAX_DEPTH: Final = 100
"""Directories one in the other, and steps of a link: whoever lists an archive goes down into it."""
MAX_PATH_BYTES: Final = 4_095
"""Longer ones cannot be unpacked on Linux."""
_COMPRESSION: Final = 5
_FILE: Final = b"0"
_LINK: Final = b"2"
_KINDS: Final = {
    0: _FILE,
    ord(_FILE): _FILE,
    ord(b"5"): b"5",  # a directory
    ord(_LINK): _LINK,
}
_PERMISSIONS: Final = 0o777
"""Nobody uploads what runs with somebody else's rights."""
_MAX_ID: Final = 2**31 - 1
_LAST_SECOND: Final = 253_402_300_799
"""Of the year 9999, the last one that has a name."""


def pack_context(files: Sequence[File]) -> bytes:
    """The tar.gz of ``files``, in their order.

    Raises InvalidRequest: too much, a path that leads out of the context, or a type of file that no client sends.
    """
    _check_size(files)
    entries = [_entry(file) for file in files]
    _check_links(entries)
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=_COMPRESSION, mtime=0, filename="") as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for info, file in zip(entries, files, strict=True):
            archive.addfile(info, io.BytesIO(file.content) if info.isreg() else None)
    return buffer.getvalue()


def _check_size(files: Sequence[File]) -> None:
    size = sum(len(file.content) for file in files)
    if size > MAX_CONTEXT_BYTES:
        raise InvalidRequest(
            f"the files are too large: {size} bytes, and no more than {MAX_CONTEXT_BYTES} are allowed;"
            " leave out what the task does not need with a .detignore file"
        )
    if len(files) > MAX_FILES:
        raise InvalidRequest(f"too many files: {len(files)}, and no more than {MAX_FILES} are allowed")


def _entry(file: File) -> tarfile.TarInfo:
    kind = _KINDS.get(file.type)
    if kind is None:
        raise InvalidRequest(f"'{file.path}' is neither a file nor a directory nor a symbolic link")
    info = tarfile.TarInfo(_inside(file.path))
    info.type = kind
    info.mode = file.mode & _PERMISSIONS
    info.mtime = max(0, min(int(file.mtime), _LAST_SECOND))
    info.uid, info.gid = _identity(file.uid), _identity(file.gid)
    if kind == _FILE:
        info.size = len(file.content)
    elif kind == _LINK:
        info.linkname = _target(file)
    if info.name == posixpath.curdir and not info.isdir():
        raise InvalidRequest(f"'{file.path}' is the uploaded directory itself")
    return info


def _check_links(entries: Sequence[tarfile.TarInfo]) -> None:
    """Refuse links that lead out, whatever they go through on their way."""
    links = {info.name: info.linkname for info in entries if info.issym()}
    if len(links) > MAX_LINKS:
        raise InvalidRequest(f"too many links: {len(links)}, and no more than {MAX_LINKS} are allowed")
    for info in entries:
        if info.name in links and links[info.name] != info.linkname:
            raise InvalidRequest(f"'{info.name}' is there twice, and once as a link")
        if links and (link := below_a_link(links, info.name)):
            raise InvalidRequest(f"'{info.name}' lies below the link '{link}'")
    for name in links:
        if leads_out(links, name):
            raise InvalidRequest(f"the link '{name}' leads out of the uploaded directory")


def _inside(path: str) -> str:
    """The path in its shortest form; raises InvalidRequest when it leads out of the context."""
    _check_length(path)
    shortest = posixpath.normpath(path) if path else ""
    if not shortest or posixpath.isabs(shortest) or shortest.split("/")[0] == "..":
        raise InvalidRequest(f"'{path}' is not a path inside of the uploaded directory")
    return shortest


def _check_length(path: str) -> None:
    if len(path.encode(errors="replace")) > MAX_PATH_BYTES or path.count("/") >= MAX_DEPTH:
        raise InvalidRequest(
            f"'{path[:100]}...' is too long a path: {MAX_PATH_BYTES} bytes and {MAX_DEPTH} parts are allowed"
        )


def _target(file: File) -> str:
    try:
        target = file.content.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"the target of the link '{file.path}' is not UTF-8") from error
    if not target or posixpath.isabs(target):
        raise InvalidRequest(f"the link '{file.path}' does not point into the uploaded directory")
    _check_length(target)
    return target


def _identity(number: int) -> int:
    return number if 0 <= number <= _MAX_ID else 0
