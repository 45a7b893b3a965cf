"""REST shapes of versions of models (docs/reference/platform.md 10)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from services.api.wire.base import Message, Pagination, Timestamp, WireEnum
from services.api.wire.checkpoints.checkpoints import Checkpoint
from services.api.wire.models.models import Model
from services.api.wire.ordering import OrderBy


class ModelVersion(Message, kw_only=True):
    """``version`` is the number within the model, by which clients ask for it; ``id`` is unique over all models."""

    id: int
    model: Model
    version: int
    checkpoint: Checkpoint
    name: str
    comment: str
    notes: str
    metadata: dict[str, Any]
    labels: list[str]
    user_id: int | UnsetType = UNSET
    username: str
    creation_time: Timestamp | None
    last_updated_time: Timestamp | None


class ModelVersionResponse(Message, kw_only=True):
    model_version: ModelVersion


class SortModelVersions(WireEnum):
    UNSPECIFIED = "SORT_BY_UNSPECIFIED", 0
    VERSION = "SORT_BY_VERSION", 1
    CREATION_TIME = "SORT_BY_CREATION_TIME", 2


class GetModelVersionsQuery(Message):
    sort_by: SortModelVersions = SortModelVersions.UNSPECIFIED
    order_by: OrderBy = OrderBy.UNSPECIFIED
    offset: int = 0
    limit: int = 0


class GetModelVersionsResponse(Message, kw_only=True):
    model: Model
    model_versions: list[ModelVersion]
    pagination: Pagination


class PostModelVersionRequest(Message):
    """The model is in the path; clients repeat it in the body, where it does not count."""

    checkpoint_uuid: str = ""
    name: str = ""
    comment: str = ""
    notes: str = ""
    metadata: dict[str, Any] | UnsetType = UNSET
    labels: list[str] = []


class PatchModelVersion(Message):
    """``metadata`` and ``labels`` replace all that the version has."""

    name: str | UnsetType = UNSET
    comment: str | UnsetType = UNSET
    notes: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    labels: list[str] | UnsetType = UNSET
