"""``GET /health``: may traffic come here? Public, because Kubernetes probes carry no token
(docs/reference/platform.md 14)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import msgspec

from services.api.access.route_permission import ANYBODY
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse
from services.api.http.routing import Route

UpDown: TypeAlias = Literal["up", "down"]


class ResourceManagerHealth(msgspec.Struct, frozen=True):
    cluster_name: str
    status: UpDown


class HealthReport(msgspec.Struct, frozen=True):
    """Keys are snake_case on the wire, too."""

    status: UpDown = "up"
    database: UpDown = "up"
    bus: UpDown = "up"
    """Whether it stores messages. Beside what the reference has, like ``problems``."""
    resource_managers: list[ResourceManagerHealth] = msgspec.field(default_factory=list)
    problems: dict[str, str] = msgspec.field(default_factory=dict)
    """What is wrong, in words for anybody: of ``database`` and ``bus``, as far as one of them is down."""


Health: TypeAlias = Callable[[], Awaitable[HealthReport]]


def health_route(health: Health) -> Route:
    """200 while the report says "up", else 503."""

    async def report(_: Call[object, None, None]) -> RawResponse:
        current = await health()
        status = 200 if current.status == "up" else 503
        return RawResponse(msgspec.json.encode(current), media_type="application/json", status=status)

    return Route(method="GET", path="/health", handler=report, permission=ANYBODY, raw=True, response=HealthReport)
