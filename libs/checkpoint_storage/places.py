"""Places of buckets: what is named by a checkpoint_storage section, in words that hold no secret. Pure.

Source: docs/reference/experiments.md 1.4; docs/reference/harness-protocol.md 13.1.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from libs.checkpoint_storage.azure_accounts import AzureAccount, azure_account

BUCKETS: Final = frozenset({"s3", "gcs", "azure"})
"""Types of storage that are not directories."""


def bucket_and_prefix(storage: Mapping[str, Any]) -> tuple[str, str]:
    """The name of the bucket or container, and what all names in it begin with, which has no slash at its ends."""
    if storage["type"] == "azure":
        name, _, below = str(storage["container"]).partition("/")
        return name, below.strip("/")
    return str(storage["bucket"]), _normalized(storage.get("prefix"))


def describe(storage: Mapping[str, Any]) -> str:
    """For people: ``s3://bucket/prefix at http://minio:9000``; never keys."""
    match storage.get("type"):
        case "s3":
            return _url("s3", storage) + _at(storage.get("endpoint_url"))
        case "gcs":
            return _url("gs", storage)
        case "azure":
            return _url("azure", storage) + _at(_endpoint(storage))
        case "shared_fs":
            return f"shared_fs {posixpath.join(str(storage['host_path']), str(storage.get('storage_path') or ''))}"
        case "directory":
            return f"directory {storage['container_path']}"
        case other:
            return f"storage of type {other}"


def _normalized(prefix: Any) -> str:
    """As the client writes it: without empty and ``.`` parts."""
    normal = posixpath.normpath(str(prefix)).strip("/") if prefix else ""
    return "" if normal == "." else normal


def _url(scheme: str, storage: Mapping[str, Any]) -> str:
    bucket, prefix = bucket_and_prefix(storage)
    return f"{scheme}://{bucket}" + (f"/{prefix}" if prefix else "")


def _endpoint(storage: Mapping[str, Any]) -> str | None:
    try:
        account: AzureAccount = azure_account(storage)
    except ValueError:
        return None
    return account.endpoint


def _at(endpoint: Any) -> str:
    if not endpoint:
        return ""
    try:
        parts = urlsplit(str(endpoint))
    except ValueError:
        return " at what is no URL"
    return f" at {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
