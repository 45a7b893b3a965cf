"""The routes that describe all others: as an OpenAPI document, and as pages for people, which show that document."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from libs.imports.one_by_one import IMPORTING
from services.api.access.route_permission import ANYBODY
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse
from services.api.http.routing import Handler, Route

OPENAPI_PATH: Final = "/api/v1/openapi.json"
DOCS_PATH: Final = "/docs"
_FORMER_DOCS_PATH: Final = "/docs/rest-api"
_FILES: Final = Path(__file__).parent / "docs"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS: Final = {"Cache-Control": "no-cache", "Content-Security-Policy": _POLICY, "X-Frame-Options": "DENY"}

Schema = dict[str, Any]


def description_routes(openapi_schema: Callable[[], Schema]) -> list[Route]:
    """The routes that describe the interface, of which ``openapi_schema`` is the document. Public: they say nothing
    that the source code does not.

    The first request builds the document, and the encoded document is kept: building it takes a fifth of a second, more
    than half of the processor time that the api needs to start, and few replicas are ever asked for it.
    """

    making: asyncio.Task[bytes] | None = None

    # In a thread, so that other requests are answered meanwhile; and once for all concurrent requests. The task is
    # shielded, so that a client that disconnects does not cancel it for the others.
    async def openapi(_: Call[object, None, None]) -> RawResponse:
        nonlocal making
        if making is None or _has_failed(making):
            making = asyncio.create_task(asyncio.to_thread(lambda: msgspec.json.encode(openapi_schema())))
        return RawResponse(await asyncio.shield(making), media_type="application/json")

    return [
        Route(method="GET", path=OPENAPI_PATH, handler=openapi, permission=ANYBODY),
        _file(DOCS_PATH, "index.html", "text/html"),
        _file(_FORMER_DOCS_PATH, "index.html", "text/html"),
        _file(f"{DOCS_PATH}/reference.js", "reference.js", "text/javascript"),
        _file(f"{DOCS_PATH}/reference.css", "reference.css", "text/css"),
    ]


def openapi_document(routes: Sequence[Route], *, title: str = "Resolute", version: str = "1") -> Schema:
    """The OpenAPI 3.1 document of ``routes``; see ``services/api/http/description/document.py``."""
    # Imported here: what describes the interface is only of use to those who ask for it.
    with IMPORTING:
        from services.api.http.description.document import describe  # noqa: PLC0415

    return describe(routes, title=title, version=version)


def _has_failed(making: asyncio.Task[bytes]) -> bool:
    return making.done() and (making.cancelled() or making.exception() is not None)


def _file(path: str, name: str, media_type: str) -> Route:
    return Route(method="GET", path=path, handler=_sender(name, media_type), permission=ANYBODY, raw=True)


def _sender(name: str, media_type: str) -> Handler:
    async def send(_: Call[object, None, None]) -> RawResponse:
        content = await asyncio.to_thread((_FILES / name).read_bytes)
        return RawResponse(content, media_type=f"{media_type}; charset=utf-8", headers=_HEADERS)

    return send
