"""REST shapes of tasks and of what they hold (docs/reference/tasks-and-cli.md 5)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from services.api.wire.base import Message, Timestamp, WireEnum
from services.api.wire.cluster.agents import Device
from services.api.wire.generic_tasks.generic_tasks import GenericTaskState
from services.api.wire.tasks.allocations import Allocation


class TaskType(WireEnum):
    UNSPECIFIED = "TASK_TYPE_UNSPECIFIED", 0
    TRIAL = "TASK_TYPE_TRIAL", 1
    NOTEBOOK = "TASK_TYPE_NOTEBOOK", 2
    SHELL = "TASK_TYPE_SHELL", 3
    COMMAND = "TASK_TYPE_COMMAND", 4
    TENSORBOARD = "TASK_TYPE_TENSORBOARD", 5
    CHECKPOINT_GC = "TASK_TYPE_CHECKPOINT_GC", 6
    GENERIC = "TASK_TYPE_GENERIC", 7


class Task(Message, kw_only=True):
    """What follows ``end_time`` is there for generic tasks only; ``config`` is JSON text."""

    task_id: str
    task_type: TaskType
    allocations: list[Allocation]
    start_time: Timestamp
    end_time: Timestamp | UnsetType = UNSET
    task_state: GenericTaskState | UnsetType = UNSET
    parent_id: str | UnsetType = UNSET
    forked_from: str | UnsetType = UNSET
    no_pause: bool | UnsetType = UNSET
    config: str | UnsetType = UNSET


class GetTaskResponse(Message, kw_only=True):
    task: Task


class Devices(Message):
    devices: list[Device] = []


class Address(Message):
    container_ip: str = ""
    container_port: int = 0
    host_ip: str = ""
    host_port: int = 0


class ResourcesStarted(Message):
    addresses: list[Address] = []
    native_resources_id: str = ""


class FailureType(WireEnum):
    UNSPECIFIED = "FAILURE_TYPE_UNSPECIFIED", 0
    RESOURCES_FAILED = "FAILURE_TYPE_RESOURCES_FAILED", 1
    RESOURCES_ABORTED = "FAILURE_TYPE_RESOURCES_ABORTED", 2
    RESOURCES_MISSING = "FAILURE_TYPE_RESOURCES_MISSING", 3
    TASK_ABORTED = "FAILURE_TYPE_TASK_ABORTED", 4
    TASK_ERROR = "FAILURE_TYPE_TASK_ERROR", 5
    AGENT_FAILED = "FAILURE_TYPE_AGENT_FAILED", 6
    AGENT_ERROR = "FAILURE_TYPE_AGENT_ERROR", 7
    RESTORE_ERROR = "FAILURE_TYPE_RESTORE_ERROR", 8
    UNKNOWN_ERROR = "FAILURE_TYPE_UNKNOWN_ERROR", 9


class ResourcesFailure(Message):
    failure_type: FailureType = FailureType.UNSPECIFIED
    err_msg: str = ""
    exit_code: int | None = None


class ResourcesStopped(Message):
    """``failure`` is null for a pod that ended by itself with exit code 0."""

    failure: ResourcesFailure | None = None


class ResourcesSummary(Message, kw_only=True):
    """One pod; in a cluster, the Job with all pods of the allocation.

    ``container_id`` is what its slots show, the id of the allocation; keys of ``agent_devices`` are nodes, and ``pods``
    for what the cluster has not placed yet.
    """

    resources_id: str
    resources_type: str
    allocation_id: str
    agent_devices: dict[str, Devices]
    container_id: str | UnsetType = UNSET
    started: ResourcesStarted | None = None
    exited: ResourcesStopped | None = None


class ProxyPort(Message, kw_only=True):
    service_id: str
    port: int
    proxy_tcp: bool
    unauthenticated: bool


class AllocationSummary(Message, kw_only=True):
    """``resources`` is empty until there is something, as clients of the reference have it, and never null."""

    task_id: str
    allocation_id: str
    name: str
    registered_time: Timestamp | None
    resource_pool: str
    slots_needed: int
    resources: list[ResourcesSummary]
    scheduler_type: str
    priority: int
    proxy_ports: list[ProxyPort] = []


class GetTasksResponse(Message):
    allocation_id_to_summary: dict[str, AllocationSummary] = {}


class TasksCountResponse(Message):
    """Running ones."""

    commands: int = 0
    notebooks: int = 0
    shells: int = 0
    tensorboards: int = 0
