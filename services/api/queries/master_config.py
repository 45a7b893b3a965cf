"""The configuration as administrators may see it: complete, with its secrets masked (spec/platform.md 12). Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from libs.cluster.config import ClusterConfig
from services.api.wire.base import struct_value

MASK: Final = "********"
_SECRETS: Final = frozenset(
    {
        "password",
        "initial_user_password",
        "access_key",
        "secret_key",
        "connection_string",
        "credential",
        # of registry_auth
        "auth",
        "identitytoken",
        "registrytoken",
    }
)


def shown_config(cluster: ClusterConfig, *, log_level: str, log_color: bool = True) -> dict[str, Any]:
    """What ``det master config`` shows. Secrets that are not set stay visible as such."""
    config = _masked(msgspec.to_builtins(cluster))
    config["resource_manager"]["slot_type"] = cluster.slot_type
    shown: dict[str, Any] = struct_value({"log": {"level": log_level, "color": log_color}, **config})
    return shown


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: MASK if key in _SECRETS and item and isinstance(item, str) else _masked(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_masked(item) for item in value]
    return value
