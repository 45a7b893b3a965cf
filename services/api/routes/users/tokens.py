"""Access tokens (``det token``)."""

from __future__ import annotations

from typing import Final

from sqlalchemy import select

from libs.db.tables.users import user_sessions
from libs.errors import InvalidRequest
from services.api.access.rights.actions import Action
from services.api.access.token_lifetimes import lifespan
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
    sees_all = call.rights.may(Action.VIEW_OTHERS_TOKENS)
    if query.username and query.username != principal.username:
        call.rights.require(Action.VIEW_OTHERS_TOKENS)
    owner_id = None if sees_all else principal.user_id
    async with call.app.db.read() as connection:
        found = await list_tokens(connection, query, owner_id=owner_id, now=call.app.clock.now())
    page, pagination = list_page(found, offset=query.offset, limit=query.limit)
    return GetTokensResponse(token_info=page, pagination=pagination)


async def post_token(call: Call[App, None, PostTokenRequest]) -> PostTokenResponse:
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
    token_id = call.path_int("tokenId")
    await _require_edit(call, token_id)
    if isinstance(call.body.token_id, int) and call.body.token_id not in (0, token_id):
        raise InvalidRequest("tokenId: differs from the one in the path")
    row = await change_token(call.app.db, token_id, call.body, now=call.app.clock.now())
    call.app.sessions.forget()
    return TokenResponse(token_info=wire_token(row))


async def _require_edit(call: Call[App, None, PatchTokenRequest], token_id: int) -> None:
    """Raises PermissionDenied; a token that is not there is left to others."""
    async with call.app.db.read() as connection:
        owner = await connection.scalar(select(user_sessions.c.user_id).where(user_sessions.c.id == token_id))
    call.rights.require(Action.EDIT_TOKEN if owner == call.principal.user_id else Action.EDIT_OTHERS_TOKEN)


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/tokens",
        handler=get_tokens,
        query=GetTokensQuery,
        response=GetTokensResponse,
        summary="List access tokens",
    ),
    Route(
        method="POST",
        path="/api/v1/tokens",
        handler=post_token,
        body=PostTokenRequest,
        response=PostTokenResponse,
        summary="Create an access token",
    ),
    Route(
        method="PATCH",
        path="/api/v1/tokens/{tokenId}",
        handler=patch_token,
        body=PatchTokenRequest,
        response=TokenResponse,
        summary="Change the description of an access token, or revoke it",
    ),
)
