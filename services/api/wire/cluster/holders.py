"""For whom limits and weights of shares are."""

from __future__ import annotations

from enum import StrEnum


class HolderScope(StrEnum):
    USER = "user"
    GROUP = "group"
    WORKSPACE = "workspace"
