"""Templates: named configurations that experiments and other tasks start from.

With basic authorization everybody may use and change every template; a template belongs to a workspace, and goes with
it. Source: docs/reference/tasks-and-cli.md 7; docs/reference/platform.md 5 (rights).
"""

from __future__ import annotations

from typing import Any, Final

from libs.errors import NotFound
from services.api.access.rights.actions import Action
from services.api.access.rights.needs import require_in
from services.api.actions.workspaces import templates as actions
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.workspaces.templates import list_templates, load_template
from services.api.wire.base import Empty
from services.api.wire.workspaces.templates import (
    GetTemplatesQuery,
    GetTemplatesResponse,
    RenameTemplateRequest,
    TemplateFields,
    TemplateResponse,
)


async def list_(call: Call[App, GetTemplatesQuery, None]) -> GetTemplatesResponse:
    async with call.app.db.read() as connection:
        page, pagination = await list_templates(connection, call.query, rights=call.rights)
    return GetTemplatesResponse(templates=page, pagination=pagination)


async def get(call: Call[App, None, None]) -> TemplateResponse:
    async with call.app.db.read() as connection:
        return TemplateResponse(template=await load_template(connection, _name(call)))


async def create(call: Call[App, None, TemplateFields]) -> TemplateResponse:
    return TemplateResponse(template=await actions.create_template(call.app.db, _name(call), call.body))


async def put(call: Call[App, None, TemplateFields]) -> TemplateResponse:
    """Make it, or change of it what is given."""
    if call.rights.by_roles and not call.body.workspace_id:
        await _require_there_or_create(call)
    return TemplateResponse(template=await actions.put_template(call.app.db, _name(call), call.body))


async def patch(call: Call[App, None, dict[str, Any]]) -> TemplateResponse:
    """The body is the new configuration, and replaces the old one whole."""
    return TemplateResponse(template=await actions.set_template_config(call.app.db, _name(call), call.body))


async def rename(call: Call[App, None, RenameTemplateRequest]) -> TemplateResponse:
    renamed = await actions.rename_template(call.app.db, call.body.old_name, call.body.new_name)
    return TemplateResponse(template=renamed)


async def delete(call: Call[App, None, None]) -> Empty:
    await actions.delete_template(call.app.db, _name(call))
    return Empty()


async def _require_there_or_create(call: Call[App, None, TemplateFields]) -> None:
    async with call.app.db.read() as connection:
        try:
            await load_template(connection, _name(call))
        except NotFound:
            workspace_id = actions.DEFAULT_WORKSPACE
            require_in(call.rights, Action.CREATE_TEMPLATE, "workspace", workspace_id, workspace_id=workspace_id)


def _name(call: Call[App, None, Any]) -> str:
    return call.path_str("name")


# Clients leave the slashes of a name as they are, so the name is the rest of the path.
_ONE: Final = "/api/v1/templates/{name:path}"
MAX_TEMPLATE_BYTES: Final = 1024 * 1024

ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/templates",
        handler=list_,
        query=GetTemplatesQuery,
        response=GetTemplatesResponse,
        summary="List templates",
    ),
    Route(method="GET", path=_ONE, handler=get, response=TemplateResponse, summary="Get a template"),
    *(
        Route(
            method=method,
            path=_ONE,
            handler=handler,
            body=body,
            response=TemplateResponse,
            max_body_bytes=MAX_TEMPLATE_BYTES,
            summary=summary,
        )
        for method, handler, body, summary in (
            ("POST", create, TemplateFields, "Create a template"),
            ("PUT", put, TemplateFields, "Create or change a template"),
            ("PATCH", patch, dict[str, Any], "Replace the configuration of a template"),
        )
    ),
    Route(method="DELETE", path=_ONE, handler=delete, response=Empty, summary="Delete a template"),
    Route(
        method="PATCH",
        path="/api/v1/template/rename",
        handler=rename,
        body=RenameTemplateRequest,
        response=TemplateResponse,
        summary="Rename a template",
    ),
)
