"""Namespaces that workspaces are bound to, and the quotas of their tasks there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from libs.errors import InvalidRequest
from services.api.actions.workspaces import namespaces as actions
from services.api.app import App
from services.api.cluster_admin.launcher_client import get_quota
from services.api.cluster_admin.namespace_requests import read_namespace_requests
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.workspaces.namespaces import list_unbound_workspaces, load_bindings
from services.api.queries.workspaces.workspaces import workspace_row
from services.api.wire.base import Empty, double
from services.api.wire.workspaces.namespaces import (
    BindingsResponse,
    DeleteBindingsQuery,
    NamespaceBinding,
    QuotasResponse,
    SetBindingsRequest,
    SetQuotasRequest,
    WorkspaceIds,
)


async def set_bindings(call: Call[App, None, SetBindingsRequest]) -> BindingsResponse:
    workspace_id = call.path_int("workspaceId")
    requests = read_namespace_requests(call.body.cluster_namespace_meta, manager=call.app.cluster.resource_manager)
    if not requests:
        raise InvalidRequest("clusterNamespaceMeta: name at least one binding")
    plans = await actions.bind_workspace(call.app, workspace_id, requests)
    return BindingsResponse(namespace_bindings=wire_bindings(workspace_id, plans))


async def delete_bindings(call: Call[App, DeleteBindingsQuery, None]) -> Empty:
    await actions.unbind_workspace(call.app, call.path_int("workspaceId"), call.query.cluster_names)
    return Empty()


async def list_bindings(call: Call[App, None, None]) -> BindingsResponse:
    workspace_id = call.path_int("id")
    async with call.app.db.read() as connection:
        await workspace_row(connection, workspace_id)
        shown = await load_bindings(connection, workspace_id, call.app.cluster.resource_manager)
    return BindingsResponse(namespace_bindings=shown)


async def set_quotas(call: Call[App, None, SetQuotasRequest]) -> Empty:
    await actions.set_quotas(call.app, call.path_int("id"), call.body.cluster_quota_pairs)
    return Empty()


async def get_quotas(call: Call[App, None, None]) -> QuotasResponse:
    """The limits as the cluster has them now, whoever has set them."""
    workspace_id = call.path_int("id")
    manager = call.app.cluster.resource_manager
    async with call.app.db.read() as connection:
        await workspace_row(connection, workspace_id)
        shown = await load_bindings(connection, workspace_id, manager)
    if not manager.has_namespaces:
        return QuotasResponse()
    namespace = shown[manager.cluster_name].namespace
    limit = await get_quota(call.app.bus, call.app.cluster.representative_pool, namespace)
    return QuotasResponse(resource_quotas={} if limit is None else {manager.cluster_name: double(limit)})


async def get_unbound(call: Call[App, None, None]) -> WorkspaceIds:
    async with call.app.db.read() as connection:
        found = await list_unbound_workspaces(connection, call.app.cluster.resource_manager)
    return WorkspaceIds(workspace_ids=list(found))


async def bind_unbound(call: Call[App, None, WorkspaceIds]) -> Empty:
    await actions.bind_unbound_workspaces(call.app, call.body.workspace_ids)
    return Empty()


def wire_bindings(workspace_id: int, plans: Iterable[actions.BindingPlan]) -> dict[str, NamespaceBinding]:
    return {
        plan.cluster_name: NamespaceBinding(
            workspace_id=workspace_id,
            namespace=plan.namespace,
            cluster_name=plan.cluster_name,
            auto_create_namespace=plan.is_own,
        )
        for plan in plans
    }


_WORKSPACE: Final = "/api/v1/workspaces"
_BINDINGS: Final = f"{_WORKSPACE}/{{workspaceId}}/namespace-bindings"

ROUTES: Final = (
    Route(
        method="POST",
        path=_BINDINGS,
        handler=set_bindings,
        body=SetBindingsRequest,
        response=BindingsResponse,
        summary="Bind a workspace to namespaces of clusters",
    ),
    Route(
        method="DELETE",
        path=_BINDINGS,
        handler=delete_bindings,
        query=DeleteBindingsQuery,
        response=Empty,
        summary="Remove bindings of a workspace to namespaces",
    ),
    Route(
        method="GET",
        path=f"{_WORKSPACE}/{{id}}/list-namespace-bindings",
        handler=list_bindings,
        response=BindingsResponse,
        summary="List the namespaces that a workspace is bound to",
    ),
    Route(
        method="POST",
        path=f"{_WORKSPACE}/{{id}}/set-resource-quota",
        handler=set_quotas,
        body=SetQuotasRequest,
        response=Empty,
        summary="Set the resource quotas of the namespaces of a workspace",
    ),
    Route(
        method="GET",
        path=f"{_WORKSPACE}/{{id}}/get-k8s-resource-quotas",
        handler=get_quotas,
        response=QuotasResponse,
        summary="Get the resource quotas of the namespaces of a workspace as the clusters have them",
    ),
    Route(
        method="GET",
        path="/api/v1/namespace-bindings/workspace-ids-with-default-bindings",
        handler=get_unbound,
        response=WorkspaceIds,
        summary="List the workspaces that are bound to no namespace of their own",
    ),
    Route(
        method="POST",
        path="/api/v1/namespace-bindings/bulk-auto-create",
        handler=bind_unbound,
        body=WorkspaceIds,
        response=Empty,
        summary="Create namespaces for workspaces and bind them",
    ),
)
