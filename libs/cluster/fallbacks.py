"""Which pools a task falls back on, and how it would run there. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from libs.cluster.config import ClusterConfig
from libs.errors import InvalidRequest

FIELD: Final = "resources.fallback_pools"
MOST: Final = 8
"""Pools that one task may name: each is looked at by itself, when it is submitted and while it waits."""


def complete_fallbacks(
    cluster: ClusterConfig,
    asked: Sequence[Mapping[str, Any]],
    *,
    pool: str,
    workspace_id: int,
    unavailable: Collection[str],
) -> list[dict[str, Any]]:
    """``asked``, in normal form, with the wait of each; without ``pool``, in which the task waits anyway.

    unavailable  pools that are bound to other workspaces only
    Raises InvalidRequest for more than MOST, and for a pool that does not exist, that the workspace may not use, or
    that is named twice.
    """
    if len(asked) > MOST:
        raise InvalidRequest(f"{FIELD}: at most {MOST} pools may be named, and {len(asked)} are")
    found: dict[str, dict[str, Any]] = {}
    for place, entry in enumerate(asked):
        name = entry["pool"]
        config = cluster.pool(name)
        if config is None or name in unavailable:
            where = f"does not exist or is not available to workspace ID {workspace_id}"
            raise InvalidRequest(f"{FIELD}[{place}]: resource pool {name} {where}")
        if name in found:
            raise InvalidRequest(f"{FIELD}[{place}]: resource pool {name} is named twice")
        if name != pool:
            found[name] = {"pool": name, "after": entry.get("after", config.fallback_wait_s)}
    return list(found.values())


def names_of(resources: Mapping[str, Any]) -> Iterator[str]:
    """The pools that stored resources fall back on; nothing for what makes no sense."""
    entries = resources.get("fallback_pools")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and isinstance(entry.get("pool"), str):
            yield entry["pool"]
