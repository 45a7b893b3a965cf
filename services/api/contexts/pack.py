"""Uploaded files to the archive that tasks unpack: a tar.gz with modes, times, directories and symbolic links.

The same files give the same bytes. Source: spec/experiments.md 11; POSIX pax for names of any length.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import tarfile
from collections.abc import Sequence
from typing import Final

from libs.errors import InvalidRequest
from services.api.wire.model_definitions import File

MAX_CONTEXT_BYTES: Final = 96 * 1024 * 1024
"""Of all contents together; clients refuse to send more than 95 MiB."""
MAX_FILES: Final = 200_000
_COMPRESSION: Final = 5
_KINDS: Final = {
    0: tarfile.REGTYPE,
    ord(tarfile.REGTYPE): tarfile.REGTYPE,
    ord(tarfile.DIRTYPE): tarfile.DIRTYPE,
    ord(tarfile.SYMTYPE): tarfile.SYMTYPE,
}
_PERMISSIONS: Final = 0o7777
_MAX_ID: Final = 2**31 - 1
_MAX_TIME: Final = 2**40


def pack_context(files: Sequence[File]) -> bytes:
    """The tar.gz of ``files``, in their order.

    Raises InvalidRequest: too much, a path that leads out of the context, or a type of file that no client sends.
    """
    _check_size(files)
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=_COMPRESSION, mtime=0, filename="") as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for file in files:
            info = _entry(file)
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
    info.mtime = max(-_MAX_TIME, min(int(file.mtime), _MAX_TIME))
    info.uid, info.gid = _identity(file.uid), _identity(file.gid)
    if kind == tarfile.REGTYPE:
        info.size = len(file.content)
    elif kind == tarfile.SYMTYPE:
        info.linkname = _link_inside(info.name, file)
    return info


def _inside(path: str) -> str:
    """The path in its shortest form; raises InvalidRequest when it leads out of the context."""
    shortest = posixpath.normpath(path) if path else ""
    if not shortest or posixpath.isabs(shortest) or shortest.split("/")[0] == "..":
        raise InvalidRequest(f"'{path}' is not a path inside of the uploaded directory")
    return shortest


def _link_inside(name: str, file: File) -> str:
    try:
        target = file.content.decode()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"the target of the link '{file.path}' is not UTF-8") from error
    if not target or posixpath.isabs(target):
        raise InvalidRequest(f"the link '{file.path}' does not point into the uploaded directory")
    _inside(posixpath.join(posixpath.dirname(name), target))
    return target


def _identity(number: int) -> int:
    return number if 0 <= number <= _MAX_ID else 0
