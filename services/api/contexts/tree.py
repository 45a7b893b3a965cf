"""Reads a packed context: the tree of its files, and a single one of them (docs/reference/experiments.md 11)."""

from __future__ import annotations

import io
import mimetypes
import posixpath
import tarfile
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from libs.errors import InvalidRequest, NotFound
from libs.natural_order.keys import natural_sort_key
from services.api.wire.base import timestamp
from services.api.wire.experiments.model_definitions import FileNode

TEXT: Final = "text/plain; charset=utf-8"
BINARY: Final = "application/octet-stream"
_SNIFFED_BYTES: Final = 512
_TYPES: Final = mimetypes.MimeTypes()  # those Python knows, the same on every machine


def file_tree(tgz: bytes) -> list[FileNode]:
    """The entries of the top directory, directories first and then by name; those below are in their ``files``."""
    root = FileNode(path="", name="", is_dir=True)
    nodes = {"": root}
    with tarfile.open(fileobj=io.BytesIO(tgz), mode="r:gz") as archive:
        for member in archive:
            path = _shortest(member.name)
            if path:
                _place(nodes, _node(archive, member, path))
    _sort(root)
    return root.files


def read_file(tgz: bytes, path: str) -> bytes:
    """The content of one file. Raises NotFound, and InvalidRequest for a directory."""
    wanted = _shortest(path)
    content: bytes | None = None
    with tarfile.open(fileobj=io.BytesIO(tgz), mode="r:gz") as archive:
        for member in archive:
            if _shortest(member.name) != wanted:
                continue
            if not member.isreg():
                raise InvalidRequest(f"'{path}' is not a file")
            source = archive.extractfile(member)
            assert source is not None  # only entries without content have none
            content = source.read()  # of entries with the same name the last one counts, as for tar itself
    if content is None:
        raise NotFound("file", path)
    return content


def _shortest(path: str) -> str:
    return posixpath.normpath(path).removeprefix("./").strip("/") if path.strip("./") else ""


def _node(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> FileNode:
    return FileNode(
        path=path,
        name=posixpath.basename(path),
        modified_time=timestamp(datetime.fromtimestamp(member.mtime, UTC)),
        content_length=member.size if member.isreg() else 0,
        is_dir=member.isdir(),
        content_type="" if member.isdir() else _content_type(archive, member, path),
        files=[],
    )


def _content_type(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> str:
    guess, encoding = _TYPES.guess_type(path)
    if guess is not None and encoding is None:
        return f"{guess}; charset=utf-8" if guess.startswith("text/") else guess
    source = archive.extractfile(member) if member.isreg() else None
    head = source.read(_SNIFFED_BYTES) if source is not None else b""
    return BINARY if b"\0" in head else TEXT


def _place(nodes: dict[str, FileNode], node: FileNode) -> None:
    """Hang a node into the tree, with directories that the archive does not mention by themselves."""
    present = nodes.get(node.path)
    if present is not None:
        node.files = present.files
        parent = nodes[posixpath.dirname(node.path)]
        parent.files[parent.files.index(present)] = node
        nodes[node.path] = node
        return
    directory = posixpath.dirname(node.path)
    if directory not in nodes:
        _place(nodes, FileNode(path=directory, name=posixpath.basename(directory), is_dir=True, files=[]))
    nodes[directory].files.append(node)
    nodes[node.path] = node


def _sort(node: FileNode) -> None:
    node.files.sort(key=lambda child: (not child.is_dir, natural_sort_key(child.name)))
    for child in _directories(node.files):
        _sort(child)


def _directories(nodes: Iterable[FileNode]) -> list[FileNode]:
    return [node for node in nodes if node.files]
