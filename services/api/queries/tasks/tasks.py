"""Tasks and their live allocations (docs/reference/tasks-and-cli.md 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.cluster.config import ClusterConfig
from libs.db.tables.tasks import allocations, generic_tasks, jobs, tasks
from libs.errors import NotFound
from libs.events.failures import failure_of
from libs.events.observations import ObservedPod
from services.api.access.rights.rights import UserRights
from services.api.access.rights.task_rows import visible_tasks
from services.api.queries.cluster.agents import DEVICE_TYPES
from services.api.queries.generic_tasks.generic_tasks import config_text
from services.api.queries.tasks.allocations import wire_allocation
from services.api.wire.base import timestamp
from services.api.wire.cluster.agents import Device, DeviceType
from services.api.wire.generic_tasks.generic_tasks import GenericTaskState
from services.api.wire.tasks.tasks import (
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

_NOWHERE: Final = "pods"
"""Stands for the node of what the cluster has not placed yet."""


async def load_task(connection: AsyncConnection, task_id: str) -> Task:
    """A task with its allocations, newest first: clients look at the first for its present state. Raises NotFound."""
    generic = generic_tasks.c
    # Without context and specification: clients ask every second until a service is ready, and these may be large.
    own = (tasks.c.task_id, tasks.c.task_type, tasks.c.start_time, tasks.c.end_time)
    query = (
        select(*own, generic.state, generic.parent_id, generic.forked_from, generic.no_pause, generic.config)
        .outerjoin(generic_tasks, generic.task_id == tasks.c.task_id)
        .where(tasks.c.task_id == task_id)
    )
    row = (await connection.execute(query)).one_or_none()
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
        task_state=UNSET if row.state is None else GenericTaskState[row.state],
        parent_id=row.parent_id or UNSET,
        forked_from=row.forked_from or UNSET,
        no_pause=UNSET if row.no_pause is None else row.no_pause,
        config=UNSET if row.config is None else config_text(row.config),
    )


async def count_running(connection: AsyncConnection, *, rights: UserRights) -> TasksCountResponse:
    """How many tasks of each interactive kind run, of those that the caller may see."""
    query = (
        select(tasks.c.task_type, func.count(func.distinct(tasks.c.task_id)))
        .join(allocations, allocations.c.task_id == tasks.c.task_id)
        .where(allocations.c.released_at.is_(None), allocations.c.state == "RUNNING")
        .where(visible_tasks(rights))
        .group_by(tasks.c.task_type)
    )
    counts: dict[str, int] = {row[0]: row[1] for row in await connection.execute(query)}
    return TasksCountResponse(
        commands=counts.get("COMMAND", 0),
        notebooks=counts.get("NOTEBOOK", 0),
        shells=counts.get("SHELL", 0),
        tensorboards=counts.get("TENSORBOARD", 0),
    )


async def live_allocations(
    connection: AsyncConnection, cluster: ClusterConfig, *, rights: UserRights
) -> dict[str, AllocationSummary]:
    """Allocation id -> summary, for all that hold or want slots and that the caller may see."""
    query = (
        select(allocations, jobs.c.priority.label("job_priority"), tasks.c.spec["proxy_ports"].label("proxy_ports"))
        .join(tasks, tasks.c.task_id == allocations.c.task_id)
        .outerjoin(jobs, jobs.c.job_id == allocations.c.job_id)
        .where(allocations.c.released_at.is_(None), visible_tasks(rights))
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
        resources=_one_job(row, cluster) if _is_job(cluster) else _resources(row, cluster),
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


def _is_job(cluster: ClusterConfig) -> bool:
    return cluster.resource_manager.is_kubernetes


def _one_job(row: Any, cluster: ClusterConfig) -> list[ResourcesSummary]:
    """In a cluster an allocation has one entry, its Job, whatever the number of its pods
    (docs/reference/kubernetes.md 1)."""
    if row.assigned_at is None:
        return []
    pods = msgspec.convert(row.pods, tuple[ObservedPod, ...])
    is_whole = len(pods) >= row.num_pods
    started = is_whole and all(map(_has_started, pods))
    return [
        ResourcesSummary(
            resources_id=row.allocation_id,
            resources_type="k8s-job",
            allocation_id=row.allocation_id,
            agent_devices=_devices_by_node(row, pods, DEVICE_TYPES[cluster.slot_type]),
            container_id=row.allocation_id,
            started=ResourcesStarted(
                # Those on the gateway are the same for all pods.
                addresses=[at for pod in pods[: 1 if pods[0].proxied else None] for at in _addresses(pod)],
                native_resources_id=pods[0].job,
            )
            if started
            else None,
            exited=ResourcesStopped(failure=_first_failure(pods))
            if is_whole and all(pod.state == "TERMINATED" for pod in pods)
            else None,
        )
    ]


def _devices_by_node(row: Any, pods: Sequence[ObservedPod], device_type: DeviceType) -> dict[str, Devices]:
    """All slots of the allocation, on the nodes of its pods; which devices they are, only the nodes know."""
    slots: Counter[str] = Counter()
    for pod in pods[: row.num_pods]:
        slots[pod.node or _NOWHERE] += pod.slots or row.slots // row.num_pods
    if row.num_pods > len(pods):  # others were not seen yet
        slots[_NOWHERE] += row.slots - slots.total()
    return {node: Devices(devices=[Device(type=device_type)] * count) for node, count in slots.items()}


def _first_failure(pods: Sequence[ObservedPod]) -> ResourcesFailure | None:
    """That of a pod that failed by itself, if there is one."""
    failures = [failure for pod in sorted(pods, key=lambda pod: pod.is_consequence) if (failure := _failure(pod))]
    return next(iter(failures), None)


def _resources(row: Any, cluster: ClusterConfig) -> list[ResourcesSummary]:
    """The pods as they were seen; until then, where the planner saw room for them."""
    device_type = DEVICE_TYPES[cluster.slot_type]
    pods = msgspec.convert(row.pods, tuple[ObservedPod, ...])
    if pods:
        return [_seen(pod, row.allocation_id, device_type) for pod in pods]
    return [
        ResourcesSummary(
            resources_id=f"{row.allocation_id}.{rank}",
            resources_type="process",
            allocation_id=row.allocation_id,
            container_id=row.allocation_id,
            agent_devices={place["node"]: Devices(devices=[Device(type=device_type)] * place["slots"])},
        )
        for rank, place in enumerate(row.places)
        if place.get("node")
    ]


def _has_started(pod: ObservedPod) -> bool:
    return pod.state in ("RUNNING", "TERMINATED") and pod.failure not in ("ABORTED", "LAUNCH_ERROR")


def _seen(pod: ObservedPod, allocation_id: str, device_type: DeviceType) -> ResourcesSummary:
    devices = [Device(id=int(ident) if ident.isdecimal() else 0, type=device_type) for ident in pod.devices]
    return ResourcesSummary(
        resources_id=pod.name,
        resources_type="process",
        allocation_id=allocation_id,
        agent_devices={pod.node: Devices(devices=devices)} if pod.node else {},
        container_id=allocation_id,
        started=ResourcesStarted(
            addresses=_addresses(pod),
            native_resources_id=pod.name,
        )
        if _has_started(pod)
        else None,
        exited=ResourcesStopped(failure=_failure(pod)) if pod.state == "TERMINATED" else None,
    )


def _addresses(pod: ObservedPod) -> list[Address]:
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


def _failure(pod: ObservedPod) -> ResourcesFailure | None:
    kind = failure_of(pod)
    if kind is None:
        return None
    return ResourcesFailure(failure_type=FailureType[kind.name], err_msg=pod.message, exit_code=pod.exit_code)
