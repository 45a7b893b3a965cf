"""Call of a handler: one request, decoded and authenticated, and the application it may work with."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Generic, TypeVar

from starlette.requests import Request
from starlette.types import Receive, Scope

from services.api.access.principal import Principal
from services.api.access.rights.rights import UserRights
from services.api.http.connection import until_gone, while_connected
from services.api.http.decoding.query import parse_path_int, parse_path_text

App = TypeVar("App")
Query = TypeVar("Query")
Body = TypeVar("Body")
Result = TypeVar("Result")


class Call(Generic[App, Query, Body]):
    """One request to one route.

    app         the wired collaborators, the same for all calls
    request_id  also in the log lines of this request and in the reply's ``X-Request-Id``
    query       the route's query struct, or None when it has none
    body        the route's body, or None when it has none
    """

    __slots__ = (
        "_path",
        "_principal",
        "_receive",
        "_rights",
        "_scope",
        "app",
        "body",
        "headers",
        "query",
        "request_id",
    )

    def __init__(
        self,
        *,
        app: App,
        request_id: str,
        query: Query,
        body: Body,
        path: Mapping[str, str],
        principal: Principal | None,
        headers: Mapping[str, str],
        scope: Scope,
        receive: Receive,
        rights: UserRights | None = None,
    ) -> None:
        self.app = app
        self.request_id = request_id
        self.query = query
        self.body = body
        self.headers = headers
        """Lower-case name -> value; of repeated headers the last one."""
        self._path = path
        self._principal = principal
        self._scope = scope
        self._receive = receive
        self._rights = rights

    @property
    def principal(self) -> Principal:
        """Who sent the request. Only routes that require authentication have one."""
        if self._principal is None:
            raise RuntimeError("this route does not authenticate its callers")
        return self._principal

    @property
    def principal_if_known(self) -> Principal | None:
        """Who sent the request; None on routes for anybody."""
        return self._principal

    @property
    def rights(self) -> UserRights:
        """What the sender may do. Only routes that require authentication know."""
        if self._rights is None:
            raise RuntimeError("this route does not authenticate its callers")
        return self._rights

    def look_again(self, rights: UserRights) -> None:
        """What the sender may do by now, for what goes on."""
        self._rights = rights

    @property
    def address(self) -> str:
        """Where the request came from, as far as trusted proxies tell; empty when unknown."""
        client = self._scope.get("client")
        return client[0] if client else ""

    @property
    def path_texts(self) -> Mapping[str, str]:
        """All parameters of the path, as they are in it."""
        return self._path

    def path_int(self, name: str) -> int:
        """A path parameter that is a 32-bit integer; raises InvalidRequest when it is not."""
        return parse_path_int(name, self._path[name])

    def path_str(self, name: str) -> str:
        """A path parameter as text, percent-decoded; raises InvalidRequest when it holds a NUL character."""
        return parse_path_text(name, self._path[name])

    @property
    def request(self) -> Request:
        """The request as Starlette sees it, for proxies and downloads; its body is gone if the route decodes one."""
        return Request(self._scope, self._receive)

    async def disconnected(self) -> None:
        """Returns when the client has closed the connection. At most one task may wait for it."""
        await until_gone(self._receive)

    async def while_connected(self, work: Awaitable[Result]) -> Result:
        """The result of ``work``, which is cancelled when the client goes away first (ClientGone is raised then)."""
        return await while_connected(self._receive, work)
