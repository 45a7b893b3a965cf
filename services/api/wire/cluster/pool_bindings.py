"""REST shapes of the workspaces that a pool is bound to (docs/reference/scheduling.md 9.3)."""

from __future__ import annotations

from msgspec import field

from services.api.wire.base import Message, Pagination


class PoolBindingRequest(Message):
    """Workspaces, by their ids or by their names."""

    workspace_ids: list[int] = []
    workspace_names: list[str] = []


class PoolBindingsQuery(Message):
    offset: int = 0
    limit: int = 0


class PoolBindingsResponse(Message):
    workspace_ids: list[int] = []
    pagination: Pagination = field(default_factory=Pagination)
