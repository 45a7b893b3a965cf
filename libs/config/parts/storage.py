"""Checkpoint storage: where checkpoints are kept, and how many of them.

Source: docs/reference/experiments.md 1.4.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any, Final

from libs.shapes.problems import Problem, missing
from libs.shapes.shape import Fields, Object, checked, text, union, whole


def _stays_inside(prefix: str) -> str | None:
    return "prefix cannot contain /../" if ".." in prefix.split("/") else None


_prefix: Final = checked(text, _stays_inside)
_COMMON: Final[Fields] = {
    "save_experiment_best": whole(0),
    "save_trial_best": whole(0),
    "save_trial_latest": whole(0),
}
_MEMBERS: Final[Mapping[str, Fields]] = {
    "shared_fs": {
        "host_path": text,
        "storage_path": text,
        "propagation": text,
        "container_path": text,
        "checkpoint_path": text,
        "tensorboard_path": text,
    },
    "directory": {"container_path": text},
    "s3": {"bucket": text, "access_key": text, "secret_key": text, "endpoint_url": text, "prefix": _prefix},
    "gcs": {"bucket": text, "prefix": _prefix},
    "azure": {"container": text, "connection_string": text, "account_url": text, "credential": text},
}

COMMON_FIELDS: Final = ("type", *_COMMON)
COMMON_DEFAULTS: Final[Mapping[str, Any]] = {
    "save_experiment_best": 0,
    "save_trial_best": 1,
    "save_trial_latest": 1,
}
MEMBER_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "shared_fs": {"storage_path": None, "propagation": "rprivate"},
    "s3": {"access_key": None, "secret_key": None, "endpoint_url": None, "prefix": None},
    "gcs": {"prefix": None},
    "azure": {"connection_string": None, "account_url": None, "credential": None},
}
REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "shared_fs": ("host_path",),
    "directory": ("container_path",),
    "s3": ("bucket",),
    "gcs": ("bucket",),
    "azure": ("container",),
}
"""What a storage cannot do without; any layer may bring it."""


def _path_stays_inside(storage: Object) -> str | None:
    """``storage_path`` must not lead out of the mounted directory, neither by itself nor by ``..``."""
    host_path, storage_path = storage.get("host_path"), storage.get("storage_path")
    if storage_path is None:
        return None
    if posixpath.isabs(storage_path):
        inside = host_path is None or _is_below(storage_path, host_path)  # without host_path, another layer has it
    else:
        inside = posixpath.normpath(storage_path).split("/")[0] != ".."
    return None if inside else "storage_path must either be a relative directory or a subdirectory of host_path"


def _is_below(path: str, root: str) -> bool:
    path, root = posixpath.normpath(path), posixpath.normpath(root)
    return path == root or path.startswith(root.rstrip("/") + "/")


def _one_azure_secret(storage: Object) -> str | None:
    both = "credential" in storage and "connection_string" in storage
    return "credential and connection_string must not both be set" if both else None


storage: Final = checked(
    union(
        "type",
        common=_COMMON,
        members=_MEMBERS,
        message=("is not an object where object[\"type\"] is one of 'shared_fs', 'directory', 's3', 'gcs', or 'azure'"),
    ),
    _path_stays_inside,
    _one_azure_secret,
)


def missing_parts(merged: Mapping[str, Any], path: str) -> list[Problem]:
    """What the storage of a complete configuration lacks."""
    kind = merged.get("type")
    if kind is None:
        return [missing(path, "type")]
    problems = [missing(path, key) for key in REQUIRED[kind] if merged.get(key) is None]
    if kind == "azure" and (merged.get("connection_string") is None) == (merged.get("account_url") is None):
        problems.append(Problem(path, "Exactly one of connection_string or account_url must be set"))
    return problems
