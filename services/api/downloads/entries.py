"""Entries of an archive: a file or a directory of a checkpoint, wherever it is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

PIECE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveEntry:
    """``name`` is relative to the checkpoint, with slashes between its parts and none at its ends.

    read  the content in pieces of about PIECE_BYTES; raises Unavailable for a file that is no longer what was listed
    """

    name: str
    is_directory: bool
    mode: int
    changed_at: float
    size_bytes: int
    read: Callable[[], Iterator[bytes]]
