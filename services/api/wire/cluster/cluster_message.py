"""REST shapes of the message that administrators show to everybody (docs/reference/platform.md 12.1)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from services.api.wire.base import Instant, Message, Timestamp


class ClusterMessage(Message, kw_only=True):
    message: str
    start_time: Timestamp | None
    end_time: Timestamp | UnsetType = UNSET
    created_time: Timestamp | None = None


class GetClusterMessageResponse(Message):
    cluster_message: ClusterMessage | None = None


class SetClusterMessageRequest(Message):
    """``end_time`` or ``duration``, or neither: then it is shown until somebody clears it."""

    message: str = ""
    start_time: Instant | None = None
    end_time: Instant | None = None
    duration: str = ""
