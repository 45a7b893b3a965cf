"""Checkpoint storage, as far as it can be seen from where the command runs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from deploy.operations.doctor.findings import Finding, ok, problem, warning
from libs.checkpoint_storage.places import BUCKETS, describe
from libs.errors import ResoluteError
from libs.ids import new_uuid

PART: Final = "checkpoint storage"
_SOME: Final = bytes(4096)
_ON_DISK: Final = {"shared_fs": "host_path", "directory": "container_path"}


def check_storage(storage: Mapping[str, Any] | None, roots: Mapping[str, str]) -> Finding:
    """Whether files can be written there.

    roots  where directories of the machines that run tasks are seen here
    """
    if storage is None:
        remedy = "add checkpoint_storage to the cluster configuration"
        return warning(PART, "an experiment is refused unless it or its workspace names one", remedy=remedy)
    kind = str(storage.get("type"))
    if kind in BUCKETS:
        return _check_bucket(storage)
    key = _ON_DISK[kind]
    there = str(storage.get(key, ""))
    here = Path(roots.get(there, there))
    if not here.is_dir():
        remedy = "run this where it is mounted, with its place in checkpoint_roots, or look on a node"
        return warning(PART, f"{there} is not seen from here", remedy=remedy)
    try:
        with tempfile.TemporaryFile(dir=here) as file:
            file.write(_SOME)  # a disk that is full still takes names of files
            file.flush()
            os.fsync(file.fileno())
            return ok(PART, f"files can be written in {here}")
    except OSError as error:
        remedy = "see its rights and its space"
        return problem(PART, f"no file can be written in {here}: {error.strerror}", remedy=remedy)


def _check_bucket(storage: Mapping[str, Any]) -> Finding:
    # Here, for the library of buckets is large, and most installations have directories.
    from libs.checkpoint_storage.files import BucketFiles  # noqa: PLC0415

    place = describe(storage)
    try:
        BucketFiles(storage, f"resolute-doctor-{new_uuid()}", home=storage).try_to_write()
    except ResoluteError as error:
        remedy = "see checkpoint_storage of the cluster configuration; keys that only pods have are not seen from here"
        return problem(PART, str(error), remedy=remedy)
    return ok(PART, f"files can be written, read and deleted in {place}")
