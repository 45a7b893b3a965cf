"""The application: a table of routes, and behind it what is added to Starlette, and then to FastAPI.

The routes of the REST interface (``services/api/routes``, and the built-in ones) go past FastAPI's router and its
middleware. Measured per request in processor time, in one process, with the routes of this service and handlers that
do nothing (Starlette 1.10): a report of metrics takes 12 microseconds through the table and 98 through the router, 8
times as much; the poll for preemption 10 and 120, 13 times as much. The router tries one route after the other, so the
cost grows with their number. Even as a middleware of FastAPI the table would take 1.4 times as much, for layers that
have nothing to do here. Training processes send these requests many times a second, so the table comes first.

Starlette does the rest: it runs the lifespan, and serves what is added with ``add_route`` or ``mount`` (websockets,
static files), whose errors get the same answers as those of the table. Behind it comes FastAPI, for routes with
dependencies and response models. It is loaded when the first of them is added: with pydantic, it takes a sixth of the
memory of an api.
Source: docs/reference/platform.md 1 and 15, docs/reference/tasks-and-cli.md 1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from libs.errors import ResoluteError
from libs.imports.lean import import_without
from services.api.http.bound_route import Authenticate, BoundRoute, FindRights, basic_rights
from services.api.http.builtin.health import Health, health_route
from services.api.http.builtin.openapi import description_routes, openapi_document
from services.api.http.decoding.upload_memory import UploadMemory
from services.api.http.dispatcher import Dispatcher, ExchangeHandler
from services.api.http.errors import classify
from services.api.http.routing import LoadedRoutes, Route, RouteTable, RouteToLoad

if TYPE_CHECKING:
    from fastapi import FastAPI

Lifespan: TypeAlias = Callable[[Starlette], AbstractAsyncContextManager[None]]


def build_application(
    routes: Sequence[Route | RouteToLoad],
    app_state: object,
    authenticate: Authenticate,
    lifespan: Lifespan | None = None,
    *,
    health: Health | None = None,
    enable_cors: bool = False,
    uploads: UploadMemory | None = None,
    recheck_interval_s: float = 45.0,
    silence_s: float = 20.0,
    below: Mapping[str, ExchangeHandler] | None = None,
    rights_of: FindRights = basic_rights,
    only_below: Callable[[Scope], bool] = lambda _: False,
) -> Application:
    """The ASGI application that serves ``routes``, the API description and, if given, ``/health``.

    app_state     what handlers find as ``call.app``
    authenticate  raises Unauthenticated or PermissionDenied; called before anything of the body is read
    enable_cors   allow browsers of any origin, with credentials
    uploads       bounds what large bodies occupy together; None does not
    below         prefix of paths -> what answers all of them
    only_below    which requests get nothing else
    rights_of     what a caller may do; by default what everybody may, and administrators
    silence_s     how long a stream sends nothing before it sends something that means nothing
    recheck_interval_s  how long a stream goes on before it is looked at again who reads it, and whether they may
    Raises ValueError when two routes answer the same requests, TypeError for a query that is no struct.
    Whatever is added to the returned application with ``add_route`` or ``mount`` gets what the table does not answer,
    and what is added to its ``framework`` gets what is left then.
    """
    interface = LoadedRoutes(routes)
    application = Application(interface, lifespan=lifespan)
    builtin = description_routes(application.openapi)
    if health is not None:
        builtin.append(health_route(health))
    table: RouteTable[BoundRoute] = RouteTable()
    memory = UploadMemory(sys.maxsize) if uploads is None else uploads
    for route in [*routes, *builtin]:
        bound = BoundRoute(
            route,
            app_state,
            authenticate,
            recheck_interval_s,
            memory,
            silence_s=silence_s,
            rights_of=rights_of,
            any_origin=enable_cors,
        )
        table.add(route.method, route.path, bound)
    application.put_in_front(table, below or {}, enable_cors=enable_cors, only_below=only_below)
    return application


class Application(Starlette):
    """HTTP meets the table first, then what Starlette and FastAPI route, then a refusal."""

    def __init__(self, interface: Sequence[Route], *, lifespan: Lifespan | None) -> None:
        super().__init__(
            lifespan=lifespan, exception_handlers={ResoluteError: _explain, HTTPException: _explain_exception_of_http}
        )
        self.router.redirect_slashes = False
        self._interface = interface
        self._http: ASGIApp = super().__call__

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document of the routes in the table. Takes a fifth of a second."""
        return openapi_document(self._interface)

    @cached_property
    def framework(self) -> FastAPI:
        """Serves what is added to it, as far as nothing before it does."""
        from libs.imports.deferred_models import models_deferred  # noqa: PLC0415  it loads pydantic

        with models_deferred():  # those of a description that FastAPI does not write here
            import_without("fastapi.openapi.models", "email_validator")  # for addresses in forms; it is here for SCIM
        from fastapi import FastAPI  # noqa: PLC0415  see above

        framework = FastAPI(
            openapi_url=None,  # the table serves the description, and a page of its own
            docs_url=None,
            redoc_url=None,
            redirect_slashes=False,
            exception_handlers={ResoluteError: _explain},
        )
        framework.router.default = self.router.default
        self.router.default = framework
        return framework

    def put_in_front(
        self,
        table: RouteTable[BoundRoute],
        below: Mapping[str, ExchangeHandler],
        *,
        enable_cors: bool,
        only_below: Callable[[Scope], bool],
    ) -> None:
        """Let ``table`` answer what it can; what nobody serves is refused in its words."""
        dispatcher = Dispatcher(table, beside=super().__call__, below=below, only_below=only_below)
        self.router.default = dispatcher.refuse
        self._http = dispatcher
        if enable_cors:
            self._http = CORSMiddleware(
                dispatcher, allow_origin_regex=".*", allow_credentials=True, allow_methods=["*"], allow_headers=["*"]
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


async def _explain(request: Request, error: Exception) -> Response:
    """The answer to an error of something that is added: in the shape of all that is outside of /api/v1."""
    reply = classify(error, request_id=request.headers.get("x-request-id", ""))
    headers = {name.decode(): value.decode() for name, value in reply.headers}
    return Response(reply.plain_body(), status_code=reply.status, headers=headers, media_type="application/json")


async def _explain_exception_of_http(_: Request, error: Exception) -> Response:
    """As FastAPI answers them."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"detail": error.detail}, status_code=error.status_code, headers=error.headers)
