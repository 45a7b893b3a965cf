"""Checkpoint storage, as far as it can be seen from where the command runs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from deploy.operations.doctor.findings import Finding, ok, problem, warning

PART: Final = "checkpoint storage"
_ON_DISK: Final = {"shared_fs": "host_path", "directory": "container_path"}


def check_storage(storage: Mapping[str, Any] | None, roots: Mapping[str, str]) -> Finding:
    """Whether files can be written there.

    roots  where directories of the machines that run tasks are seen here
    """
    if storage is None:
        return ok(PART, "each experiment names its own")
    kind = str(storage.get("type"))
    key = _ON_DISK.get(kind)
    if key is None:
        return warning(PART, f"{kind} is reached from tasks", remedy="submit an experiment that saves a checkpoint")
    there = str(storage.get(key, ""))
    here = Path(roots.get(there, there))
    if not here.is_dir():
        remedy = "run this where it is mounted, with its place in checkpoint_roots, or look on a node"
        return warning(PART, f"{there} is not seen from here", remedy=remedy)
    try:
        with tempfile.TemporaryFile(dir=here):
            return ok(PART, f"files can be written in {here}")
    except OSError as error:
        remedy = "see its rights and its space"
        return problem(PART, f"no file can be written in {here}: {error.strerror}", remedy=remedy)
