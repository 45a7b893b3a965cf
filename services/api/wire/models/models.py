"""REST shapes of models (docs/reference/platform.md 10)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from services.api.wire.base import Message, Pagination, Timestamp, WireEnum
from services.api.wire.ordering import OrderBy


class Model(Message, kw_only=True):
    id: int
    name: str
    description: str
    notes: str
    metadata: dict[str, Any]
    labels: list[str]
    user_id: int
    username: str
    workspace_id: int
    archived: bool
    num_versions: int
    creation_time: Timestamp | None
    last_updated_time: Timestamp | None


class ModelResponse(Message, kw_only=True):
    model: Model


class SortModels(WireEnum):
    UNSPECIFIED = "SORT_BY_UNSPECIFIED", 0
    NAME = "SORT_BY_NAME", 1
    DESCRIPTION = "SORT_BY_DESCRIPTION", 2
    CREATION_TIME = "SORT_BY_CREATION_TIME", 3
    LAST_UPDATED_TIME = "SORT_BY_LAST_UPDATED_TIME", 4
    NUM_VERSIONS = "SORT_BY_NUM_VERSIONS", 5
    WORKSPACE = "SORT_BY_WORKSPACE", 6


class GetModelsQuery(Message):
    """``name`` and ``description`` are some part of it, in any case; of ``labels`` a model has at least one."""

    sort_by: SortModels = SortModels.UNSPECIFIED
    order_by: OrderBy = OrderBy.UNSPECIFIED
    offset: int = 0
    limit: int = 0
    id: int | UnsetType = UNSET
    name: str = ""
    description: str = ""
    labels: list[str] = []
    archived: bool | UnsetType = UNSET
    users: list[str] = []
    user_ids: list[int] = []
    workspace_ids: list[int] = []
    workspace_names: list[str] = []


class GetModelsResponse(Message, kw_only=True):
    models: list[Model]
    pagination: Pagination


class PostModelRequest(Message):
    """``workspace_id`` wins over ``workspace_name``; without either it is the workspace that is always there."""

    name: str = ""
    description: str = ""
    notes: str = ""
    metadata: dict[str, Any] | UnsetType = UNSET
    labels: list[str] = []
    workspace_id: int | UnsetType = UNSET
    workspace_name: str | UnsetType = UNSET


class PatchModel(Message):
    """``metadata`` and ``labels`` replace all that the model has; a workspace is where it moves."""

    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    notes: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    labels: list[str] | UnsetType = UNSET
    workspace_id: int | UnsetType = UNSET
    workspace_name: str | UnsetType = UNSET


class MoveModelRequest(Message):
    destination_workspace_id: int = 0


class GetModelLabelsQuery(Message):
    workspace_id: int | UnsetType = UNSET


class GetModelLabelsResponse(Message, kw_only=True):
    labels: list[str]
