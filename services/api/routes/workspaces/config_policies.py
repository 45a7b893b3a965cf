"""Config policies: what is fixed or limited in what people launch, for the whole cluster or for a workspace.

Everybody may see them. Those of the cluster are for administrators to set, those of a workspace also for its owner.
"""

from __future__ import annotations

from typing import Any, Final, get_args

from libs.errors import InvalidRequest
from services.api.actions.workspaces.config_policies import delete_policies, set_policies
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.workspaces.config_policies import Workload, stored_policies
from services.api.queries.workspaces.workspaces import workspace_row
from services.api.wire.base import Empty, struct_value
from services.api.wire.workspaces.config_policies import PoliciesResponse, PutPoliciesRequest


async def get_policies(call: Call[App, None, None]) -> PoliciesResponse:
    workload, workspace_id = _workload(call), _workspace_id(call)
    async with call.app.db.read() as connection:
        if workspace_id is not None:
            await workspace_row(connection, workspace_id)
        found = await stored_policies(connection, workspace_id, workload)
    return PoliciesResponse(config_policies=struct_value(found))


async def put_policies(call: Call[App, None, PutPoliciesRequest]) -> PoliciesResponse:
    workload, workspace_id = _workload(call), _workspace_id(call)
    policies = await set_policies(
        call.app.db,
        workspace_id,
        workload,
        call.body.config_policies,
        rights=call.rights,
        now=call.app.clock.now(),
    )
    return PoliciesResponse(config_policies=struct_value(policies))


async def remove_policies(call: Call[App, None, None]) -> Empty:
    workload, workspace_id = _workload(call), _workspace_id(call)
    await delete_policies(call.app.db, workspace_id, workload, rights=call.rights)
    return Empty()


def _workload(call: Call[App, Any, Any]) -> Workload:
    given = call.path_str("workloadType")
    if not given.strip():
        raise InvalidRequest("no workload type specified")
    for workload in get_args(Workload):
        if given == workload:
            return workload  # type: ignore[no-any-return]
    raise InvalidRequest(f"invalid workload type: {given[:50]}")


def _workspace_id(call: Call[App, Any, Any]) -> int | None:
    """None where the path is that of the whole cluster."""
    return call.path_int("workspaceId") if "workspaceId" in call.path_texts else None


_PATHS: Final = (
    ("/api/v1/config-policies/global/{workloadType}", "the cluster"),
    ("/api/v1/config-policies/workspaces/{workspaceId}/{workloadType}", "a workspace"),
)

ROUTES: Final = tuple(
    route
    for path, whole in _PATHS
    for route in (
        Route(
            method="GET",
            path=path,
            handler=get_policies,
            response=PoliciesResponse,
            summary=f"Get the configuration policies of {whole}",
        ),
        Route(
            method="PUT",
            path=path,
            handler=put_policies,
            body=PutPoliciesRequest,
            response=PoliciesResponse,
            summary=f"Set the configuration policies of {whole}",
        ),
        Route(
            method="DELETE",
            path=path,
            handler=remove_policies,
            response=Empty,
            summary=f"Remove the configuration policies of {whole}",
        ),
    )
)
