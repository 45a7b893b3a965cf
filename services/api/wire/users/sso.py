"""REST shapes of logins at a provider (docs/reference/platform.md 2.5)."""

from __future__ import annotations

from msgspec import Struct

from services.api.wire.base import Message, Timestamp


class SsoProvider(Struct, frozen=True, kw_only=True):
    """In ``GET /info``, where keys are snake_case."""

    name: str
    sso_url: str
    type: str = "OIDC"
    always_redirect: bool = False


class MasterSsoProvider(Message, kw_only=True):
    """The same in ``GET /api/v1/master``."""

    name: str
    sso_url: str
    type: str = "OIDC"
    always_redirect: bool = False


class SsoQuery(Message):
    relay_state: str = ""


class CallbackQuery(Message):
    """What a provider sends back: a code, or why there is none."""

    code: str = ""
    state: str = ""
    error: str = ""
    error_description: str = ""


class LegacyUser(Struct, frozen=True, kw_only=True):
    """``GET /users/me``, older than /api/v1; keys are snake_case."""

    id: int
    username: str
    display_name: str
    admin: bool
    active: bool
    remote: bool
    modified_at: Timestamp | None
