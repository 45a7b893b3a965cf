"""Models: named collections of checkpoints, in a workspace (docs/reference/platform.md 10)."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET

from libs.db.transactions import in_transaction
from services.api.actions.models import models as actions
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.models.models import list_labels, list_models, model_row, wire_model
from services.api.wire.base import Empty
from services.api.wire.models.models import (
    GetModelLabelsQuery,
    GetModelLabelsResponse,
    GetModelsQuery,
    GetModelsResponse,
    ModelResponse,
    MoveModelRequest,
    PatchModel,
    PostModelRequest,
)


async def list_(call: Call[App, GetModelsQuery, None]) -> GetModelsResponse:
    async with call.app.db.read() as connection:
        page, pagination = await list_models(connection, call.query, call.rights)
    return GetModelsResponse(models=page, pagination=pagination)


async def get(call: Call[App, None, None]) -> ModelResponse:
    async with call.app.db.read() as connection:
        return ModelResponse(model=wire_model(await model_row(connection, _name(call), call.rights)))


async def get_labels(call: Call[App, GetModelLabelsQuery, None]) -> GetModelLabelsResponse:
    workspace_id = None if call.query.workspace_id is UNSET else call.query.workspace_id
    async with call.app.db.read() as connection:
        return GetModelLabelsResponse(labels=await list_labels(connection, workspace_id, call.rights))


async def create(call: Call[App, None, PostModelRequest]) -> ModelResponse:
    now = call.app.clock.now()
    row = await in_transaction(
        call.app.db, lambda connection: actions.create_model(connection, call.body, call.rights, now=now)
    )
    return ModelResponse(model=wire_model(row))


async def patch(call: Call[App, None, PatchModel]) -> ModelResponse:
    return await _patch(call, call.body)


async def move(call: Call[App, None, MoveModelRequest]) -> Empty:
    await _patch(call, PatchModel(workspace_id=call.body.destination_workspace_id))
    return Empty()


async def _patch(call: Call[App, None, Any], change: PatchModel) -> ModelResponse:
    name, now = _name(call), call.app.clock.now()
    row = await in_transaction(
        call.app.db, lambda connection: actions.patch_model(connection, name, change, call.rights, now=now)
    )
    return ModelResponse(model=wire_model(row))


async def archive(call: Call[App, None, None]) -> Empty:
    return await _archive(call, archived=True)


async def unarchive(call: Call[App, None, None]) -> Empty:
    return await _archive(call, archived=False)


async def _archive(call: Call[App, None, None], *, archived: bool) -> Empty:
    name, now = _name(call), call.app.clock.now()
    await in_transaction(
        call.app.db,
        lambda connection: actions.archive_model(connection, name, call.rights, archived=archived, now=now),
    )
    return Empty()


async def delete(call: Call[App, None, None]) -> Empty:
    name = _name(call)
    await in_transaction(call.app.db, lambda connection: actions.delete_model(connection, name, call.rights))
    return Empty()


def _name(call: Call[App, Any, Any]) -> str:
    return call.path_str("modelName")


_ALL: Final = "/api/v1/models"
_ONE: Final = "/api/v1/models/{modelName}"
MAX_MODEL_BYTES: Final = 8 * 1024 * 1024
"""Of notes and metadata: lists hold those of all models."""

ROUTES: Final = (
    Route(
        method="GET",
        path=_ALL,
        handler=list_,
        query=GetModelsQuery,
        response=GetModelsResponse,
        summary="List the models of the registry",
    ),
    Route(
        method="POST",
        path=_ALL,
        handler=create,
        body=PostModelRequest,
        response=ModelResponse,
        max_body_bytes=MAX_MODEL_BYTES,
        summary="Add a model to the registry",
    ),
    Route(method="GET", path=_ONE, handler=get, response=ModelResponse, summary="Get a model, by its name or id"),
    Route(
        method="PATCH",
        path=_ONE,
        handler=patch,
        body=PatchModel,
        response=ModelResponse,
        max_body_bytes=MAX_MODEL_BYTES,
        summary="Change a model",
    ),
    Route(method="DELETE", path=_ONE, handler=delete, response=Empty, summary="Delete a model with its versions"),
    Route(method="POST", path=f"{_ONE}/archive", handler=archive, response=Empty, summary="Archive a model"),
    Route(method="POST", path=f"{_ONE}/unarchive", handler=unarchive, response=Empty, summary="Unarchive a model"),
    Route(
        method="POST",
        path=f"{_ONE}/move",
        handler=move,
        body=MoveModelRequest,
        response=Empty,
        summary="Move a model to another workspace",
    ),
    Route(
        method="GET",
        path="/api/v1/model/labels",
        handler=get_labels,
        query=GetModelLabelsQuery,
        response=GetModelLabelsResponse,
        summary="List the labels of models, the most popular first",
    ),
)
