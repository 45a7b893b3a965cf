"""The configuration as administrators may see it: complete, with its secrets masked (docs/reference/platform.md 12).
Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from libs.cluster.config import ClusterConfig
from libs.config import CREDENTIALS, mask_credentials
from services.api.wire.base import struct_value

_SECRETS: Final = CREDENTIALS | {"initial_user_password", "client_secret"}


def shown_config(cluster: ClusterConfig, *, log_level: str, log_color: bool = True) -> dict[str, Any]:
    """What ``det master config`` shows. Secrets that are not set stay visible as such."""
    config = mask_credentials(msgspec.to_builtins(cluster), _SECRETS)
    config["resource_manager"]["slot_type"] = cluster.slot_type
    shown: dict[str, Any] = struct_value({"log": {"level": log_level, "color": log_color}, **config})
    return shown
