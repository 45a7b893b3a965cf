"""Access tokens (``det token``)."""

from __future__ import annotations

from typing import Final

from libs.errors import InvalidRequest, PermissionDenied
from services.api.access.token_lifetimes import lifespan
from services.api.access.user_checks import require_admin
from services.api.actions.users.tokens import change_token, create_token
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.pagination import list_page
from services.api.queries.users.tokens import list_tokens, wire_token
from services.api.wire.users.tokens import (
    GetTokensQuery,
    GetTokensResponse,
    PatchTokenRequest,
    PostTokenRequest,
    PostTokenResponse,
    TokenResponse,
)


async def get_tokens(call: Call[App, GetTokensQuery, None]) -> GetTokensResponse:
    """Administrators see all, others their own."""
    principal, query = call.principal, call.query
    if query.username and query.username != principal.username and not principal.admin:
        raise PermissionDenied("only admin privileged users can list tokens of other users")
    owner_id = None if principal.admin else principal.user_id
    async with call.app.db.read() as connection:
        found = await list_tokens(connection, query, owner_id=owner_id, now=call.app.clock.now())
    page, pagination = list_page(found, offset=query.offset, limit=query.limit)
    return GetTokensResponse(token_info=page, pagination=pagination)


async def post_token(call: Call[App, None, PostTokenRequest]) -> PostTokenResponse:
    require_admin(call.principal, "create token for own/other users")
    body = call.body
    lives = lifespan(body.lifespan, call.app.cluster.security.token)
    token, token_id = await create_token(
        call.app.db,
        user_id=body.user_id or call.principal.user_id,
        lifespan=lives,
        description=body.description,
        now=call.app.clock.now(),
    )
    return PostTokenResponse(token=token, token_id=token_id)


async def patch_token(call: Call[App, None, PatchTokenRequest]) -> TokenResponse:
    require_admin(call.principal, "update token for own/other users")
    token_id = call.path_int("tokenId")
    if isinstance(call.body.token_id, int) and call.body.token_id not in (0, token_id):
        raise InvalidRequest("tokenId: differs from the one in the path")
    row = await change_token(call.app.db, token_id, call.body, now=call.app.clock.now())
    call.app.sessions.forget()
    return TokenResponse(token_info=wire_token(row))


ROUTES: Final = (
    Route(method="GET", path="/api/v1/tokens", handler=get_tokens, query=GetTokensQuery, response=GetTokensResponse),
    Route(method="POST", path="/api/v1/tokens", handler=post_token, body=PostTokenRequest, response=PostTokenResponse),
    Route(
        method="PATCH",
        path="/api/v1/tokens/{tokenId}",
        handler=patch_token,
        body=PatchTokenRequest,
        response=TokenResponse,
    ),
)
