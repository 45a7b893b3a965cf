"""A built page of one folder: its files, and its ``index.html`` for every address that the page makes up itself.

Starlette keeps requests inside of the folder, past ``..`` and links, and answers HEAD, ranges and conditions. What is
added is which file it is, in which coding, and how long it is kept. Source: docs/reference/platform.md 15.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from http import HTTPStatus
from mimetypes import guess_type
from pathlib import PurePosixPath
from typing import Final, NamedTuple

import anyio.to_thread
from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse, Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from libs.cluster.web_root import INDEX
from services.api.http.errors import ErrorReply, unknown_method, unknown_path
from services.api.http.replies.reply import SECURITY_HEADERS, accepts_gzip
from services.api.web.caching import FOREVER, cache_control

_METHODS: Final = ("GET", "HEAD")
_CODINGS: Final = (("br", ".br"), ("gzip", ".gz"))
"""Of files that a build has compressed, best first."""
_REFUSED: Final = re.compile(r"q=0(?:\.0*)?")
_LEAST_BYTES: Final = 1024
_LEVEL: Final = 6
_IN_A_THREAD_BYTES: Final = 8 * 1024
"""Pieces of a file have 64 KiB; to compress one takes longer than other requests should wait."""


class BuiltPage:
    """An ASGI application below the prefix of the page."""

    def __init__(self, root: str) -> None:
        self._files: ASGIApp = _Files(directory=root, check_dir=False)
        self._compressed: ASGIApp = GZipMiddleware(
            self._files, minimum_size=_LEAST_BYTES, compresslevel=_LEVEL, thread_minimum_size=_IN_A_THREAD_BYTES
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        compressed = "range" not in headers and accepts_gzip(headers.get("accept-encoding", ""))
        await (self._compressed if compressed else self._files)(scope, receive, send)


class _Found(NamedTuple):
    """path in the folder, as it was asked for; coding, name and status of the file; tag of its content, or nothing."""

    path: str
    coding: str
    file: str
    status: os.stat_result
    tag: str


class _Files(StaticFiles):
    async def check_config(self) -> None:
        """Done at the start of the api, in words."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        method = scope["method"]
        if method not in _METHODS:
            return _refusal(unknown_method(method, _METHODS))
        headers = Headers(scope=scope)
        found = await anyio.to_thread.run_sync(self._find, path, headers)
        if found is None:
            return _refusal(unknown_path(method, scope["path"]))
        kept, coding, file, status, tag = found
        response = FileResponse(
            file,
            stat_result=status,
            media_type=_media_type(kept),
            headers={"cache-control": cache_control(kept), "vary": "Accept-Encoding", **({"etag": tag} if tag else {})},
        )
        if coding:
            response.headers["content-encoding"] = coding
        for key, value in SECURITY_HEADERS:
            response.headers[key.decode()] = value.decode()
        is_known = self.is_not_modified(response.headers, headers)
        if tag and "if-none-match" not in headers:
            is_known = False  # the time of such a file says nothing of its content
        if not coding and "range" not in headers and accepts_gzip(headers.get("accept-encoding", "")):
            # What is compressed on the way has other bytes: nobody may go on from them with a range of the file.
            response.headers["etag"] = f"W/{response.headers['etag']}"
        return NotModifiedResponse(response.headers) if is_known else response

    def _find(self, path: str, headers: Headers) -> _Found | None:
        """What is served; None where there is nothing."""
        if self._regular(path) is None:
            if path.startswith("..") or (PurePosixPath(path).suffix and "text/html" not in headers.get("accept", "")):
                return None  # a part of a page that is not there is no other page
            path = INDEX
        # A range is one of the file, and not of what a build has compressed.
        accepted = [] if "range" in headers else _accepted(headers.get("accept-encoding", ""))
        for coding, suffix in (*_CODINGS, ("", "")):
            if (not coding or coding in accepted) and (found := self._regular(path + suffix)) is not None:
                file, status = found
                tag = "" if cache_control(path) == FOREVER else _tag_of_content(file)
                return _Found(path, coding, file, status, tag)
        return None

    def _regular(self, path: str) -> tuple[str, os.stat_result] | None:
        """A file inside of the folder, and nothing else that the path may lead to."""
        try:
            full_path, status = self.lookup_path(path)
        except PermissionError:
            return None
        except OSError as error:
            if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
                return None
            raise
        except ValueError:  # a NUL in a name
            return None
        if status is None or not stat.S_ISREG(status.st_mode) or not os.access(full_path, os.R_OK):
            return None
        return full_path, status


def _tag_of_content(file: str) -> str:
    """Builds that can be repeated give all files one time, and an index that names others keeps its size."""
    with open(file, "rb") as content:
        return f'"{hashlib.file_digest(content, "sha256").hexdigest()[:32]}"'


def _accepted(accept_encoding: str) -> list[str]:
    """Codings that a client names and does not refuse with ``q=0``."""
    accepted = []
    for part in accept_encoding.lower().split(","):
        coding, _, parameters = part.partition(";")
        if _REFUSED.fullmatch(parameters.replace(" ", "")) is None:
            accepted.append(coding.strip())
    return accepted


def _media_type(name: str) -> str:
    """Browsers run no script that has another one (``nosniff``), whatever tables the machine has."""
    suffix = PurePosixPath(name).suffix
    return _TYPES.get(suffix) or guess_type(name)[0] or "application/octet-stream"


_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".map": "application/json",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".webmanifest": "application/manifest+json",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
}


def _refusal(reply: ErrorReply) -> Response:
    headers = {name.decode(): value.decode() for name, value in (*reply.headers, *SECURITY_HEADERS)}
    status = HTTPStatus(reply.status)
    return Response(reply.plain_body(), status_code=status, headers=headers, media_type="application/json")
