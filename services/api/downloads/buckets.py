"""Entries of a checkpoint that lies in a bucket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from libs.checkpoint_storage.files import BucketFiles, StoredFile
from libs.outbound.forward_proxy import Passage
from services.api.downloads.entries import ArchiveEntry

_DIRECTORY_MODE: Final = 0o755
_FILE_MODE: Final = 0o644


def entries_of_bucket(
    storage: Mapping[str, Any], uuid: str, home: Mapping[str, Any] | None = None, passage: Passage | None = None
) -> Iterator[ArchiveEntry]:
    """In the order of their names. Raises Unavailable and FailedPrecondition."""
    files = BucketFiles(storage, uuid, home=home, passage=passage)
    return (_entry(files, found) for found in files.listed())


def _entry(files: BucketFiles, found: StoredFile) -> ArchiveEntry:
    return ArchiveEntry(
        name=found.path,
        is_directory=found.is_directory,
        mode=_DIRECTORY_MODE if found.is_directory else _FILE_MODE,
        changed_at=found.changed_at.timestamp(),
        size_bytes=found.size_bytes,
        read=partial(files.read, found),
    )
