"""Sessions: log in, log out, and look up the current user."""

from __future__ import annotations

from datetime import timedelta
from email import utils
from typing import Any, Final

from services.api.access import passwords
from services.api.access.credentials import login_cookie
from services.api.actions.users import sessions
from services.api.app import App
from services.api.http.call import Call
from services.api.http.replies.reply import Reply
from services.api.http.routing import Route
from services.api.queries.users.users import user_by_id, wire_user
from services.api.wire.base import Empty
from services.api.wire.users.sessions import LoginRequest, LoginResponse
from services.api.wire.users.users import UserResponse


async def login(call: Call[App, None, LoginRequest]) -> Reply:
    body, now = call.body, call.app.clock.now()
    salted = body.password if body.is_hashed else passwords.salted(body.password)
    client = call.request.client
    token, user = await call.app.logins.attempt(
        body.username,
        client.host if client else "",
        lambda: sessions.log_in(call.app.db, username=body.username, salted_password=salted, now=now),
    )
    expires = utils.format_datetime(now + sessions.SESSION_LIFETIME, usegmt=True)
    cookie = login_cookie(token, expires=expires, is_secure=_is_secure(call))
    return Reply(LoginResponse(token=token, user=wire_user(user)), {"Set-Cookie": cookie})


async def logout(call: Call[App, None, None]) -> Reply:
    await sessions.log_out(call.app.db, call.principal)
    call.app.sessions.forget()
    past = utils.format_datetime(call.app.clock.now() - timedelta(days=365), usegmt=True)
    return Reply(Empty(), {"Set-Cookie": login_cookie("", expires=past, is_secure=_is_secure(call))})


def _is_secure(call: Call[App, None, Any]) -> bool:
    """As far as trusted proxies tell how the browser came."""
    return bool(call.request.scope["scheme"] == "https")


async def current_user(call: Call[App, None, None]) -> UserResponse:
    async with call.app.db.read_prepared() as connection:
        return UserResponse(user=wire_user(await user_by_id(connection, call.principal.user_id)))


ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/auth/login",
        handler=login,
        body=LoginRequest,
        response=LoginResponse,
        summary="Log in",
    ),
    Route(method="POST", path="/api/v1/auth/logout", handler=logout, response=Empty, summary="Log out"),
    Route(
        method="GET",
        path="/api/v1/auth/user",
        handler=current_user,
        response=UserResponse,
        summary="Get the current user",
    ),
    Route(method="GET", path="/api/v1/me", handler=current_user, response=UserResponse, summary="Get the current user"),
)
