"""Versions of models: checkpoints with a number, which nobody deletes (docs/reference/platform.md 10)."""

from __future__ import annotations

from typing import Any, Final

from libs.db.transactions import in_transaction
from services.api.actions.models import versions as actions
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.models.models import model_row, wire_model
from services.api.queries.models.versions import list_versions, load_version
from services.api.routes.models.models import MAX_MODEL_BYTES
from services.api.wire.base import Empty
from services.api.wire.models.versions import (
    GetModelVersionsQuery,
    GetModelVersionsResponse,
    ModelVersionResponse,
    PatchModelVersion,
    PostModelVersionRequest,
)


async def list_(call: Call[App, GetModelVersionsQuery, None]) -> GetModelVersionsResponse:
    async with call.app.db.read() as connection:
        model = await model_row(connection, _name(call), call.rights)
        page, pagination = await list_versions(connection, model, call.query, reader_id=call.principal.user_id)
    return GetModelVersionsResponse(model=wire_model(model), model_versions=page, pagination=pagination)


async def get(call: Call[App, None, None]) -> ModelVersionResponse:
    return await _load(call, _number(call))


async def register(call: Call[App, None, PostModelVersionRequest]) -> ModelVersionResponse:
    name, now = _name(call), call.app.clock.now()
    number = await in_transaction(
        call.app.db,
        lambda connection: actions.register_version(connection, name, call.body, call.rights, now=now),
    )
    return await _load(call, number)


async def patch(call: Call[App, None, PatchModelVersion]) -> ModelVersionResponse:
    name, number, now = _name(call), _number(call), call.app.clock.now()
    await in_transaction(
        call.app.db,
        lambda connection: actions.patch_version(connection, name, number, call.body, call.rights, now=now),
    )
    return await _load(call, number)


async def delete(call: Call[App, None, None]) -> Empty:
    name, number, now = _name(call), _number(call), call.app.clock.now()
    await in_transaction(
        call.app.db, lambda connection: actions.delete_version(connection, name, number, call.rights, now=now)
    )
    return Empty()


async def _load(call: Call[App, None, Any], number: int) -> ModelVersionResponse:
    async with call.app.db.read() as connection:
        model = await model_row(connection, _name(call), call.rights)
        version = await load_version(connection, model, number, reader_id=call.principal.user_id)
    return ModelVersionResponse(model_version=version)


def _name(call: Call[App, Any, Any]) -> str:
    return call.path_str("modelName")


def _number(call: Call[App, Any, Any]) -> int:
    return call.path_int("modelVersionNum")


_ALL: Final = "/api/v1/models/{modelName}/versions"
_ONE: Final = "/api/v1/models/{modelName}/versions/{modelVersionNum}"

ROUTES: Final = (
    Route(
        method="GET",
        path=_ALL,
        handler=list_,
        query=GetModelVersionsQuery,
        response=GetModelVersionsResponse,
        summary="List the versions of a model",
    ),
    Route(
        method="POST",
        path=_ALL,
        handler=register,
        body=PostModelVersionRequest,
        response=ModelVersionResponse,
        max_body_bytes=MAX_MODEL_BYTES,
        summary="Register a checkpoint as the next version of a model",
    ),
    Route(method="GET", path=_ONE, handler=get, response=ModelVersionResponse, summary="Get a version of a model"),
    Route(
        method="PATCH",
        path=_ONE,
        handler=patch,
        body=PatchModelVersion,
        response=ModelVersionResponse,
        max_body_bytes=MAX_MODEL_BYTES,
        summary="Change a version of a model",
    ),
    Route(method="DELETE", path=_ONE, handler=delete, response=Empty, summary="Delete a version of a model"),
)
