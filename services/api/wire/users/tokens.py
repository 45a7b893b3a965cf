"""REST shapes of access tokens (docs/reference/platform.md 2.4)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from services.api.wire.base import Message, Pagination, Timestamp, WireEnum
from services.api.wire.ordering import OrderBy


class TokenType(WireEnum):
    UNSPECIFIED = "TOKEN_TYPE_UNSPECIFIED", 0
    USER_SESSION = "TOKEN_TYPE_USER_SESSION", 1
    ACCESS_TOKEN = "TOKEN_TYPE_ACCESS_TOKEN", 2


class TokenInfo(Message, kw_only=True):
    id: int
    user_id: int
    expiry: Timestamp | None
    created_at: Timestamp | None
    token_type: TokenType = TokenType.ACCESS_TOKEN
    revoked: bool
    description: str


class SortTokens(WireEnum):
    UNSPECIFIED = "SORT_BY_UNSPECIFIED", 0
    USER_ID = "SORT_BY_USER_ID", 1
    EXPIRY = "SORT_BY_EXPIRY", 2
    CREATED_AT = "SORT_BY_CREATED_AT", 3
    TOKEN_TYPE = "SORT_BY_TOKEN_TYPE", 4
    REVOKED = "SORT_BY_REVOKED", 5
    DESCRIPTION = "SORT_BY_DESCRIPTION", 6


class GetTokensQuery(Message):
    token_ids: list[int] = []
    username: str = ""
    show_inactive: bool = False
    sort_by: SortTokens = SortTokens.UNSPECIFIED
    order_by: OrderBy = OrderBy.UNSPECIFIED
    offset: int = 0
    limit: int = 0


class GetTokensResponse(Message):
    token_info: list[TokenInfo] = []
    pagination: Pagination = field(default_factory=Pagination)


class PostTokenRequest(Message):
    """``lifespan`` is a Go duration, -1 for the longest, or empty for the default."""

    user_id: int = 0
    lifespan: str = ""
    description: str = ""


class PostTokenResponse(Message, kw_only=True):
    """The only time that the token is shown."""

    token: str
    token_id: int


class PatchTokenRequest(Message):
    token_id: int | UnsetType = UNSET
    description: str | UnsetType = UNSET
    set_revoked: bool = False


class TokenResponse(Message, kw_only=True):
    token_info: TokenInfo
