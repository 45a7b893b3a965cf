"""REST shapes of logging in."""

from __future__ import annotations

from services.api.wire.base import Message
from services.api.wire.users.users import User


class LoginRequest(Message):
    username: str = ""
    password: str = ""
    is_hashed: bool = False


class LoginResponse(Message):
    token: str = ""
    user: User | None = None
