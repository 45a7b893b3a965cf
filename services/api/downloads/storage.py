"""Finds the files of a checkpoint: in a directory as this process sees it, or in a bucket.

Source: docs/reference/experiments.md 1.4 and 10.3.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import structlog

from libs.checkpoint_storage.places import describe
from libs.config.stored import text_in
from libs.errors import FailedPrecondition, NotFound, ResoluteError, Unavailable
from libs.imports.one_by_one import IMPORTING
from libs.outbound.forward_proxy import Passage
from services.api.downloads.archives import Format, archive
from services.api.downloads.directories import entries_of_directory
from services.api.downloads.entries import ArchiveEntry

log = structlog.get_logger(__name__)


def checkpoint_archive(
    uuid: str,
    storage: Mapping[str, Any],
    roots: Mapping[str, str],
    form: Format,
    *,
    home: Mapping[str, Any] | None = None,
    passage: Passage | None = None,
) -> Iterator[bytes]:
    """The files of a checkpoint as one archive in pieces, each of which waits for the storage.

    storage  a checkpoint_storage section
    roots    where this process sees directories of other machines: path there -> path here; others are where they are
    home     the checkpoint_storage section of the cluster
    passage  the way to a bucket that a user has named; None connects to whatever it is
    Raises NotFound when there are no files, FailedPrecondition for storage that has to be put right, and Unavailable
    for one that may answer later.
    """
    try:
        yield from archive(checkpoint_entries(uuid, storage, roots, home=home, passage=passage), form)
    except OSError as error:
        raise _unreadable(describe(storage), error) from error


def checkpoint_entries(
    uuid: str,
    storage: Mapping[str, Any],
    roots: Mapping[str, str],
    *,
    home: Mapping[str, Any] | None = None,
    passage: Passage | None = None,
) -> Iterator[ArchiveEntry]:
    """What a checkpoint consists of. Raises what ``checkpoint_archive`` does, and OSError."""
    if not uuid or uuid in (".", "..") or "/" in uuid:
        raise NotFound("checkpoint", uuid)
    match storage.get("type"):
        case "shared_fs":
            # An absolute storage_path lies below host_path, and joining keeps it as it is.
            base = PurePosixPath(_path_in(storage, "host_path")) / text_in(storage, "storage_path")
        case "directory":
            base = PurePosixPath(_path_in(storage, "container_path"))
        case "s3" | "gcs" | "azure":
            return _in_bucket(uuid, storage, home, passage)
        case other:
            raise FailedPrecondition(f"checkpoint '{uuid}' is in storage of type {other}, which nobody reads any more")
    return _in_directory(uuid, seen_from_here(base, roots))


def _path_in(storage: Mapping[str, Any], name: str) -> str:
    if not (found := text_in(storage, name)):
        raise FailedPrecondition(f"checkpoint_storage of type {storage['type']} lacks {name}, so nobody can read it")
    return found


def seen_from_here(path: PurePosixPath, roots: Mapping[str, str]) -> Path:
    """``path`` with the longest of the roots it lies in replaced by what that is here."""
    inside = [root for root in roots if path.is_relative_to(root)]
    if not inside:
        return Path(path)
    root = max(inside, key=lambda candidate: len(PurePosixPath(candidate).parts))
    return Path(roots[root]) / path.relative_to(root)


def _in_directory(uuid: str, base: Path) -> Iterator[ArchiveEntry]:
    directory = base / uuid
    try:
        # Of the entry itself: what a link stands for was never written as this checkpoint.
        is_directory = stat.S_ISDIR(directory.lstat().st_mode)
    except FileNotFoundError:
        is_directory = False
    if not is_directory:
        raise NotFound("files of checkpoint", uuid)
    return entries_of_directory(directory)


def _in_bucket(
    uuid: str, storage: Mapping[str, Any], home: Mapping[str, Any] | None, passage: Passage | None
) -> Iterator[ArchiveEntry]:
    # Here, for the library of buckets is large, and most installations have directories.
    with IMPORTING:
        from services.api.downloads.buckets import entries_of_bucket  # noqa: PLC0415

    entries = entries_of_bucket(storage, uuid, home, passage)
    first = next(entries, None)
    if first is None:
        raise NotFound("files of checkpoint", uuid)
    return chain((first,), entries)


def _unreadable(place: str, error: OSError) -> ResoluteError:
    log.warning("storage.failed", storage=place, error=type(error).__name__, reason=str(error))
    told = f"checkpoint storage {place} cannot be read: {error.strerror or type(error).__name__}"
    return FailedPrecondition(told) if isinstance(error, PermissionError) else Unavailable(told)
