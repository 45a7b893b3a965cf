"""REST shapes of a search before it runs (docs/reference/experiments.md 3.6)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from services.api.wire.base import Message


class PreviewRequest(Message):
    config: dict[str, Any] | None = None


class SearchUnit(Message, kw_only=True):
    """``value`` units of ``name``, or training to completion."""

    name: str | UnsetType = UNSET
    value: int | UnsetType = UNSET
    max_length: bool


class TrialSummary(Message, kw_only=True):
    count: int
    unit: SearchUnit


class SearchSummary(Message, kw_only=True):
    config: dict[str, Any]
    trials: list[TrialSummary]


class PreviewResponse(Message, kw_only=True):
    summary: SearchSummary
