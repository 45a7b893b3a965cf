"""REST shapes of the files that users upload, and of looking into them (docs/reference/experiments.md 11)."""

from __future__ import annotations

from msgspec import field

from services.api.wire.base import Int64, Message, Timestamp


class File(Message):
    """One entry of an uploaded context; ``content`` of a symbolic link is its target.

    type   type flag of tar as a number: 48 a file, 53 a directory, 50 a symbolic link
    mtime  Unix time in seconds
    mode   permissions; the bits above them, which clients send along, mean nothing
    """

    path: str = ""
    type: int = 48
    content: bytes = b""
    mtime: Int64 = "0"
    mode: int = 0o644
    uid: int = 0
    gid: int = 0


class ModelDefinitionResponse(Message, kw_only=True):
    b64_tgz: str = field(name="b64Tgz")


class FileNode(Message, kw_only=True):
    path: str
    name: str
    modified_time: Timestamp | None = None
    content_length: int = 0
    is_dir: bool = False
    content_type: str = ""
    files: list[FileNode] = []


class FileTreeResponse(Message, kw_only=True):
    files: list[FileNode]


class FileRequest(Message):
    path: str = ""


class FileResponse(Message, kw_only=True):
    file: bytes


class DownloadQuery(Message):
    path: str = ""
