"""REST shapes of config policies (docs/reference/tasks-and-cli.md 8)."""

from __future__ import annotations

from typing import Any

from services.api.wire.base import Message


class PutPoliciesRequest(Message):
    config_policies: str = ""
    """YAML or JSON."""


class PoliciesResponse(Message):
    config_policies: dict[str, Any] = {}
