"""The files an experiment was created with (docs/reference/experiments.md 11)."""

from __future__ import annotations

import asyncio
import base64
import posixpath
import re
from typing import Any, Final
from urllib.parse import quote

from libs.errors import InvalidRequest
from services.api.app import App
from services.api.contexts.tree import file_tree, read_file
from services.api.http.call import Call
from services.api.http.replies.reply import RawResponse
from services.api.http.routing import Route
from services.api.queries.experiments.model_definitions import load_model_definition
from services.api.wire.experiments.model_definitions import (
    DownloadQuery,
    FileRequest,
    FileResponse,
    FileTreeResponse,
    ModelDefinitionResponse,
)

_LONGEST_NAME: Final = 50


async def get(call: Call[App, None, None]) -> ModelDefinitionResponse:
    _, tgz = await _load(call)
    encoded = await asyncio.to_thread(base64.b64encode, tgz)
    return ModelDefinitionResponse(b64_tgz=encoded.decode("ascii"))


async def tree(call: Call[App, None, None]) -> FileTreeResponse:
    _, tgz = await _load(call)
    return FileTreeResponse(files=await asyncio.to_thread(file_tree, tgz))


async def file(call: Call[App, None, FileRequest]) -> FileResponse:
    _, tgz = await _load(call)
    return FileResponse(file=await asyncio.to_thread(read_file, tgz, call.body.path))


async def download(call: Call[App, None, None]) -> RawResponse:
    """The archive as a file, named for the experiment."""
    name, tgz = await _load(call)
    short = re.sub(r"[^A-Za-z0-9_-]", "", name.replace(" ", "_"))[:_LONGEST_NAME]
    file_name = f"exp{call.path_int('experimentId')}_{short}_model_def.tar.gz"
    return RawResponse(tgz, media_type="application/x-gtar", headers=_attachment(file_name))


async def download_file(call: Call[App, DownloadQuery, None]) -> RawResponse:
    """One file of the archive."""
    if not call.query.path:
        raise InvalidRequest("missing parameter: path")
    _, tgz = await _load(call)
    content = await asyncio.to_thread(read_file, tgz, call.query.path)
    return RawResponse(content, headers=_attachment(posixpath.basename(call.query.path)))


async def _load(call: Call[App, Any, Any]) -> tuple[str, bytes]:
    async with call.app.db.read() as connection:
        return await load_model_definition(connection, call.path_int("experimentId"))


def _attachment(file_name: str) -> dict[str, str]:
    # RFC 6266: a name that is not ASCII goes into filename*.
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(file_name, safe='')}"}


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/experiments/{experimentId}/model_def",
        handler=get,
        response=ModelDefinitionResponse,
        summary="Get the uploaded files of an experiment as a base64 tar.gz",
    ),
    Route(
        method="GET",
        path="/api/v1/experiments/{experimentId}/file_tree",
        handler=tree,
        response=FileTreeResponse,
        summary="List the uploaded files of an experiment",
    ),
    Route(
        method="POST",
        path="/api/v1/experiments/{experimentId}/file",
        handler=file,
        body=FileRequest,
        response=FileResponse,
        summary="Get an uploaded file of an experiment",
    ),
    Route(
        method="GET",
        path="/experiments/{experimentId}/model_def",
        handler=download,
        raw=True,
        summary="Download the uploaded files of an experiment",
    ),
    Route(
        method="GET",
        path="/experiments/{experimentId}/file/download",
        handler=download_file,
        query=DownloadQuery,
        raw=True,
        summary="Download an uploaded file of an experiment",
    ),
)
