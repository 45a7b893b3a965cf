"""The page that a browser finds where no built page is served; it links to the description of the REST interface."""

from __future__ import annotations

from typing import Final

from services.api.app import App
from services.api.http.builtin.openapi import DOCS_PATH, OPENAPI_PATH
from services.api.http.call import Call
from services.api.http.replies.page import HTML, page
from services.api.http.replies.reply import RawResponse
from services.api.http.routing import Route

BODY: Final = f"""<h1>Resolute</h1>
<p>This is a Resolute gateway. The WebUI is not part of this release, and <code>web.root</code> names none; the
command line and the Python SDK work:</p>
<p><code>pip install determined==0.38.1</code>, then <code>det -m &lt;this address&gt; user login</code></p>
<p><a href="{DOCS_PATH}">The REST interface</a> (<a href="{OPENAPI_PATH}">as OpenAPI</a>)</p>"""
PAGE: Final = page("Resolute", BODY)


async def to_landing(_: Call[App, None, None]) -> RawResponse:
    return RawResponse(b"", media_type="text/plain", status=301, headers={"Location": "/det"})


async def landing(_: Call[App, None, None]) -> RawResponse:
    headers = {"Cache-Control": "no-cache", "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
    return RawResponse(PAGE, media_type=HTML, headers=headers)


ROUTES: Final = (
    Route(method="GET", path="/", handler=to_landing, raw=True, summary="Redirect a browser to the web page"),
    Route(method="GET", path="/det", handler=landing, raw=True, summary="Show the web page"),
    Route(
        method="GET",
        path="/det/{rest:path}",
        handler=landing,
        raw=True,
        summary="Show the web page at one of its addresses",
    ),
)
