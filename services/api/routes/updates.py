"""``/stream``: live updates of projects, models and versions, over a websocket (docs/reference/platform.md 16)."""

from __future__ import annotations

from functools import partial
from typing import Final

from libs.errors import InvalidRequest
from libs.serving.take_over import take_over_of
from services.api.access.credentials import USER_TOKEN_HEADER, find_credentials
from services.api.access.forwarded import forwarded_of
from services.api.access.own_pages import require_own_websocket
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.http.upgrades import Upgrade, accepted

PATH: Final = "/stream"
SWITCH: Final = "streaming_updates"


async def stream(call: Call[App, None, None]) -> Upgrade:
    scope = call.request.scope
    take_over, head = take_over_of(scope), accepted(scope["headers"])
    if take_over is None or head is None:
        raise InvalidRequest(f"{PATH} is a websocket: send a request for one, as RFC 6455 has it")
    by_cookie = not (call.headers.get("authorization") or call.headers.get(USER_TOKEN_HEADER))
    if by_cookie:
        require_own_websocket("follow updates", call.headers, forwarded_of(scope))
    credentials = find_credentials(call.headers, allow_allocation=False)
    return Upgrade(
        partial(
            call.app.updates.admit,
            head=head,
            take_over=take_over,
            credentials=credentials,
            rights=call.rights,
            user_agent=call.headers.get("user-agent", ""),
        )
    )


ROUTES: Final = (
    Route(
        method="GET",
        path=PATH,
        handler=stream,
        raw=True,
        summary="Follow live updates over a websocket, where the feature switch streaming_updates is on",
    ),
)
