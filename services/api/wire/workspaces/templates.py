"""REST shapes of templates."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType, field

from services.api.wire.base import Message, Pagination, WireEnum
from services.api.wire.ordering import OrderBy


class Template(Message, kw_only=True):
    name: str
    config: dict[str, Any]
    workspace_id: int


class TemplateResponse(Message, kw_only=True):
    template: Template


class TemplateFields(Message):
    """A template as clients send it. Its name is in the path; they repeat it in the body, where it does not count."""

    config: dict[str, Any] | UnsetType = UNSET
    workspace_id: int = 0
    """0 says nothing."""


class RenameTemplateRequest(Message):
    old_name: str = ""
    new_name: str = ""


class SortTemplates(WireEnum):
    """Templates are sorted by name whatever is asked for."""

    UNSPECIFIED = "SORT_BY_UNSPECIFIED", 0
    NAME = "SORT_BY_NAME", 1


class GetTemplatesQuery(Message):
    sort_by: SortTemplates = SortTemplates.UNSPECIFIED
    order_by: OrderBy = OrderBy.UNSPECIFIED
    offset: int = 0
    limit: int = 0
    name: str = ""
    """Some part of it, in any case."""
    workspace_ids: list[int] = []


class GetTemplatesResponse(Message):
    templates: list[Template] = []
    pagination: Pagination = field(default_factory=Pagination)
