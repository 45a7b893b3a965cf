"""Reports of tasks about their allocations, and the long polls they wait in
(docs/reference/harness-protocol.md 8, 9, 12)."""

from __future__ import annotations

from typing import Any, Final

from libs.db.transactions import in_transaction
from libs.errors import InvalidRequest, NotFound
from libs.ids import new_uuid, require_uuid
from services.api.actions.tasks import allocations as actions
from services.api.actions.tasks.allocations import Accelerators, check_allocation_id
from services.api.all_gather.membership import Peer
from services.api.all_gather.wait import gather
from services.api.app import App
from services.api.http.call import Call
from services.api.http.routing import Route
from services.api.queries.tasks.allocations import are_slots_wanted, list_accelerators, load_allocation
from services.api.waits.preemption import wait_for_preemption
from services.api.waits.preemption_polls import expect_no_polls
from services.api.wire.base import Empty
from services.api.wire.tasks.allocations import (
    AcceleratorData,
    AllGatherRequest,
    AllGatherResponse,
    GetAllocationResponse,
    GetTaskAcceleratorDataResponse,
    NotifyContainerRunningResponse,
    PostAcceleratorDataRequest,
    PreemptionQuery,
    PreemptionResponse,
    ProxyAddressRequest,
)


def _allocation_id(call: Call[App, Any, Any]) -> str:
    return check_allocation_id(call.path_str("allocationId"))


async def get_allocation(call: Call[App, None, None]) -> GetAllocationResponse:
    async with call.app.db.read() as connection:
        return GetAllocationResponse(allocation=await load_allocation(connection, _allocation_id(call)))


async def get_preemption(call: Call[App, PreemptionQuery, None]) -> PreemptionResponse:
    app, allocation_id, has_ended = call.app, _allocation_id(call), call.query.has_ended
    is_its_own = call.principal.task is not None and call.principal.task.allocation_id == allocation_id
    if has_ended and is_its_own:
        await in_transaction(app.db, lambda tx: expect_no_polls(tx, allocation_id))
    if has_ended:
        async with app.db.read() as connection:
            if await are_slots_wanted(connection, allocation_id):
                return PreemptionResponse(preempt=True)
    waiting = wait_for_preemption(
        app.db,
        app.notifier,
        allocation_id,
        timeout_s=call.query.timeout_seconds,
        poll_clock=app.clock if is_its_own and not has_ended else None,
    )
    return PreemptionResponse(preempt=await call.while_connected(waiting))


async def post_ack_preemption(call: Call[App, None, None]) -> None:
    allocation_id = _allocation_id(call)
    await in_transaction(call.app.db, lambda tx: actions.acknowledge_preemption(tx, allocation_id))


async def post_pending_preemption(call: Call[App, None, None]) -> None:
    allocation_id = _allocation_id(call)
    await in_transaction(call.app.db, lambda tx: actions.request_preemption(tx, allocation_id))


async def post_ready(call: Call[App, None, None]) -> None:
    allocation_id, now = _allocation_id(call), call.app.clock.now()
    await in_transaction(call.app.db, lambda tx: actions.report_ready(tx, allocation_id, now))


async def post_waiting(call: Call[App, None, None]) -> None:
    allocation_id = _allocation_id(call)
    await in_transaction(call.app.db, lambda tx: actions.report_waiting(tx, allocation_id))


async def post_proxy_address(call: Call[App, None, ProxyAddressRequest]) -> None:
    allocation_id, address = _allocation_id(call), call.body.proxy_address
    if not address:
        raise InvalidRequest("proxyAddress cannot be empty")
    now = call.app.clock.now()
    await in_transaction(call.app.db, lambda tx: actions.set_proxy_address(tx, allocation_id, address, now=now))


async def post_accelerator_data(call: Call[App, None, PostAcceleratorDataRequest]) -> None:
    allocation_id, data = _allocation_id(call), call.body.accelerator_data or AcceleratorData()
    found = Accelerators(
        node_name=data.node_name,
        container_id=data.container_id,
        kind=data.accelerator_type,
        uuids=data.accelerator_uuids,
    )
    await in_transaction(call.app.db, lambda tx: actions.record_accelerators(tx, allocation_id, found))


async def get_task_accelerator_data(call: Call[App, None, None]) -> GetTaskAcceleratorDataResponse:
    async with call.app.db.read() as connection:
        return GetTaskAcceleratorDataResponse(
            accelerator_data=await list_accelerators(connection, call.path_str("taskId"))
        )


async def post_all_gather(call: Call[App, None, AllGatherRequest]) -> AllGatherResponse:
    app, body = call.app, call.body
    if body.num_peers < 1:
        raise InvalidRequest("numPeers must be at least 1")
    peer = Peer(
        allocation_id=_allocation_id(call),
        request_uuid=require_uuid(body.request_uuid, "request uuid"),
        holder=new_uuid(),
        num_peers=body.num_peers,
        data=body.data or {},
    )
    return AllGatherResponse(data=await call.while_connected(gather(app.db, app.notifier, app.clock, peer)))


async def post_daemon(call: Call[App, None, None]) -> None:
    """Nothing to note: the containers of an allocation are one resource, which ends with the last that counts.

    It has the id of the allocation; raises NotFound for any other.
    """
    await _require(call)
    _require_resources(call)


async def post_container_running(call: Call[App, None, None]) -> NotifyContainerRunningResponse:
    """Said by launchers this system has none of."""
    await _require(call)
    return NotifyContainerRunningResponse()


async def get_rendezvous(call: Call[App, None, None]) -> None:
    """The way in which containers outside of Kubernetes found each other; here they use all-gather."""
    _allocation_id(call)
    raise NotFound("resources", call.path_str("resourcesId"))


async def _require(call: Call[App, None, None]) -> None:
    async with call.app.db.read() as connection:
        await actions.require_allocation(connection, _allocation_id(call))


def _require_resources(call: Call[App, None, None]) -> None:
    if call.path_str("resourcesId") != call.path_str("allocationId"):
        raise NotFound("resources", call.path_str("resourcesId"))


_ONE: Final = "/api/v1/allocations/{allocationId}"

ROUTES: Final = (
    Route(method="GET", path=_ONE, handler=get_allocation, response=GetAllocationResponse, summary="Get an allocation"),
    Route(
        method="GET",
        path=f"{_ONE}/signals/preemption",
        handler=get_preemption,
        query=PreemptionQuery,
        response=PreemptionResponse,
        summary="Wait until an allocation is asked to end",
    ),
    Route(
        method="POST",
        path=f"{_ONE}/signals/ack_preemption",
        handler=post_ack_preemption,
        response=Empty,
        idempotent=True,
        summary="Acknowledge that an allocation has been asked to end",
    ),
    Route(
        method="POST",
        path=f"{_ONE}/signals/pending_preemption",
        handler=post_pending_preemption,
        response=Empty,
        idempotent=True,
        summary="Report that an allocation will be preempted from outside",
    ),
    Route(
        method="POST",
        path=f"{_ONE}/ready",
        handler=post_ready,
        response=Empty,
        idempotent=True,
        summary="Report that the service of an allocation is ready",
    ),
    Route(
        method="POST",
        path=f"{_ONE}/waiting",
        handler=post_waiting,
        response=Empty,
        idempotent=True,
        summary="Report that an allocation waits for something",
    ),
    Route(
        method="POST",
        path=f"{_ONE}/proxy_address",
        handler=post_proxy_address,
        body=ProxyAddressRequest,
        response=Empty,
        idempotent=True,
        summary="Set the address at which the services of an allocation are reached",
    ),
    Route(
        method="POST",
        path=f"{_ONE}/acceleratorData",
        handler=post_accelerator_data,
        body=PostAcceleratorDataRequest,
        response=Empty,
        idempotent=True,
        summary="Store which accelerators a container of an allocation has",
    ),
    Route(
        method="POST",
        path=f"{_ONE}/all_gather",
        handler=post_all_gather,
        body=AllGatherRequest,
        response=AllGatherResponse,
        idempotent=True,
        summary="Exchange data among the processes of an allocation",
    ),
    Route(
        method="POST",
        path=f"{_ONE}/notify_container_running",
        handler=post_container_running,
        response=NotifyContainerRunningResponse,
        idempotent=True,
        summary="Report that a container of an allocation runs",
    ),
    Route(
        method="POST",
        path=f"{_ONE}/resources/{{resourcesId}}/daemon",
        handler=post_daemon,
        response=Empty,
        idempotent=True,
        summary="Mark resources of an allocation as a daemon, which has no effect",
    ),
    Route(
        method="GET",
        path=f"{_ONE}/resources/{{resourcesId}}/rendezvous",
        handler=get_rendezvous,
        summary="Get the addresses of all containers of an allocation",
    ),
    Route(
        method="GET",
        path="/api/v1/tasks/{taskId}/acceleratorData",
        handler=get_task_accelerator_data,
        response=GetTaskAcceleratorDataResponse,
        summary="List the accelerators that a task has used",
    ),
)
