"""Locates the files of a checkpoint as this process sees them.

Source: docs/reference/experiments.md 1.4 and 10.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from libs.errors import FailedPrecondition, NotFound


def checkpoint_directory(uuid: str, storage: Mapping[str, Any], roots: Mapping[str, str]) -> Path:
    """The directory with the files of a checkpoint.

    storage  a checkpoint_storage section
    roots    where this process sees directories of other machines: path there -> path here; others are where they are
    Raises NotFound, and FailedPrecondition for storage that only clients can read.
    """
    match storage.get("type"):
        case "shared_fs":
            # An absolute storage_path lies below host_path, and joining keeps it as it is.
            base = PurePosixPath(storage["host_path"]) / (storage.get("storage_path") or "")
        case "directory":
            base = PurePosixPath(storage["container_path"])
        case other:
            raise FailedPrecondition(
                f"checkpoints in {other} storage are not sent by the server; download them directly from storage"
            )
    if not uuid or uuid in (".", "..") or "/" in uuid:
        raise NotFound("checkpoint", uuid)
    directory = seen_from_here(base, roots) / uuid
    if not directory.is_dir():
        raise NotFound("files of checkpoint", uuid)
    return directory


def seen_from_here(path: PurePosixPath, roots: Mapping[str, str]) -> Path:
    """``path`` with the longest of the roots it lies in replaced by what that is here."""
    inside = [root for root in roots if path.is_relative_to(root)]
    if not inside:
        return Path(path)
    root = max(inside, key=lambda candidate: len(PurePosixPath(candidate).parts))
    return Path(roots[root]) / path.relative_to(root)
