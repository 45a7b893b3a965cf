"""Tasks and what is alive of them (spec/tasks-and-cli.md 5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import ClusterConfig
from libs.db.tables.tasks import allocations, jobs, tasks
from libs.errors import NotFound
from libs.events.observations import FailureKind, PodSeen
from services.api.queries.allocations import wire_allocation
from services.api.queries.nodes import DEVICE_TYPES
from services.api.wire.agents import Device, DeviceType
from services.api.wire.base import timestamp
from services.api.wire.tasks import (
    Address,
    AllocationSummary,
    Devices,
    FailureType,
    ProxyPort,
    ResourcesFailure,
    ResourcesStarted,
    ResourcesStopped,
    ResourcesSummary,
    Task,
    TasksCountResponse,
    TaskType,
)

_FAILURES: Final[Mapping[FailureKind, FailureType]] = {
    "FAILED": FailureType.RESOURCES_FAILED,
    "ABORTED": FailureType.RESOURCES_ABORTED,
    "NODE_LOST": FailureType.AGENT_FAILED,
    "DELETED": FailureType.RESOURCES_MISSING,
    "LAUNCH_ERROR": FailureType.AGENT_ERROR,
    "IMAGE_PULL": FailureType.RESOURCES_ABORTED,
}


async def load_task(connection: AsyncConnection, task_id: str) -> Task:
    """A task with its allocations, newest first: clients look at the first for its present state. Raises NotFound."""
    row = (await connection.execute(select(tasks).where(tasks.c.task_id == task_id))).one_or_none()
    if row is None:
        raise NotFound("task", task_id)
    attempts = await connection.execute(
        select(allocations).where(allocations.c.task_id == task_id).order_by(allocations.c.requested_at.desc())
    )
    return Task(
        task_id=row.task_id,
        task_type=TaskType[row.task_type],
        allocations=[wire_allocation(attempt) for attempt in attempts],
        start_time=timestamp(row.start_time) or "",
        end_time=timestamp(row.end_time) or UNSET,
    )


async def count_running(connection: AsyncConnection) -> TasksCountResponse:
    """How many tasks of each interactive kind run."""
    query = (
        select(tasks.c.task_type, func.count(func.distinct(tasks.c.task_id)))
        .join(allocations, allocations.c.task_id == tasks.c.task_id)
        .where(allocations.c.released_at.is_(None), allocations.c.state == "RUNNING")
        .group_by(tasks.c.task_type)
    )
    counts: dict[str, int] = {row[0]: row[1] for row in await connection.execute(query)}
    return TasksCountResponse(
        commands=counts.get("COMMAND", 0),
        notebooks=counts.get("NOTEBOOK", 0),
        shells=counts.get("SHELL", 0),
        tensorboards=counts.get("TENSORBOARD", 0),
    )


async def live_allocations(connection: AsyncConnection, cluster: ClusterConfig) -> dict[str, AllocationSummary]:
    """Allocation id -> summary, for all that hold or want slots; checkpoint GC is invisible."""
    query = (
        select(allocations, jobs.c.priority.label("job_priority"), tasks.c.spec["proxy_ports"].label("proxy_ports"))
        .join(tasks, tasks.c.task_id == allocations.c.task_id)
        .outerjoin(jobs, jobs.c.job_id == allocations.c.job_id)
        .where(allocations.c.released_at.is_(None), tasks.c.task_type != "CHECKPOINT_GC")
        .order_by(allocations.c.requested_at, allocations.c.allocation_id)
    )
    return {row.allocation_id: summary(row, cluster) for row in await connection.execute(query)}


def summary(row: Any, cluster: ClusterConfig) -> AllocationSummary:
    """A row of ``allocations`` as clients see it, with ``job_priority`` and the ``proxy_ports`` of its task.

    The priority of the row itself is the one that its pods were made with.
    """
    pool = cluster.pool(row.pool)
    return AllocationSummary(
        task_id=row.task_id,
        allocation_id=row.allocation_id,
        name=row.name,
        registered_time=timestamp(row.requested_at),
        resource_pool=row.pool,
        slots_needed=row.slots,
        resources=_resources(row, cluster) or None,
        scheduler_type=cluster.scheduler_of(pool).type if pool else "priority",
        priority=cluster.default_priority(row.pool) if row.job_priority is None else row.job_priority,
        proxy_ports=[
            ProxyPort(
                service_id=port["service_id"],
                port=port["port"],
                proxy_tcp=port.get("proxy_tcp", False),
                unauthenticated=port.get("unauthenticated", False),
            )
            for port in row.proxy_ports or ()
        ],
    )


def _resources(row: Any, cluster: ClusterConfig) -> list[ResourcesSummary]:
    """The pods as they were seen; until then, where the planner saw room for them."""
    kind = "k8s-job" if cluster.resource_manager.type == "kubernetes" else "process"
    device_type = DEVICE_TYPES[cluster.slot_type]
    pods = msgspec.convert(row.pods, tuple[PodSeen, ...])
    if pods:
        return [_seen(pod, row.allocation_id, kind, device_type) for pod in pods]
    return [
        ResourcesSummary(
            resources_id=f"{row.allocation_id}.{rank}",
            resources_type=kind,
            allocation_id=row.allocation_id,
            container_id=row.allocation_id,
            agent_devices={place["node"]: Devices(devices=[Device(type=device_type)] * place["slots"])},
        )
        for rank, place in enumerate(row.places)
        if place.get("node")
    ]


def _seen(pod: PodSeen, allocation_id: str, kind: str, device_type: DeviceType) -> ResourcesSummary:
    devices = [Device(id=int(ident) if ident.isdecimal() else 0, type=device_type) for ident in pod.devices]
    started = pod.state in ("RUNNING", "TERMINATED") and pod.failure != "ABORTED"
    return ResourcesSummary(
        resources_id=pod.name,
        resources_type=kind,
        allocation_id=allocation_id,
        agent_devices={pod.node: Devices(devices=devices)} if pod.node else {},
        container_id=allocation_id,
        started=ResourcesStarted(
            addresses=_addresses(pod),
            native_resources_id=pod.name,
        )
        if started
        else None,
        exited=ResourcesStopped(failure=_failure(pod)) if pod.state == "TERMINATED" else None,
    )


def _addresses(pod: PodSeen) -> list[Address]:
    """Those of its ports on the gateway, where there is one; else its own."""
    if not pod.proxied:
        return [Address(container_ip=address, host_ip=address) for address in pod.addresses]
    return [
        Address(
            container_ip=each.container_ip,
            container_port=each.container_port,
            host_ip=each.host_ip,
            host_port=each.host_port,
        )
        for each in pod.proxied
    ]


def _failure(pod: PodSeen) -> ResourcesFailure | None:
    if not pod.failure:
        return None
    kind = _FAILURES.get(pod.failure, FailureType.UNKNOWN_ERROR)
    return ResourcesFailure(failure_type=kind, err_msg=pod.message, exit_code=pod.exit_code)
