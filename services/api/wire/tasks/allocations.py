"""REST shapes of messages between tasks and the api about an allocation (docs/reference/harness-protocol.md 8, 9,
12)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from services.api.wire.base import Message, Timestamp, WireEnum


class TaskState(WireEnum):
    """State of an allocation as shown to users; QUEUED is what has no pods yet."""

    UNSPECIFIED = "STATE_UNSPECIFIED", 0
    PULLING = "STATE_PULLING", 3
    STARTING = "STATE_STARTING", 4
    RUNNING = "STATE_RUNNING", 5
    TERMINATED = "STATE_TERMINATED", 6
    TERMINATING = "STATE_TERMINATING", 7
    WAITING = "STATE_WAITING", 8
    QUEUED = "STATE_QUEUED", 9


class Allocation(Message, kw_only=True):
    task_id: str
    state: TaskState
    is_ready: bool | UnsetType = UNSET
    start_time: Timestamp | UnsetType = UNSET
    end_time: Timestamp | UnsetType = UNSET
    allocation_id: str
    slots: int
    exit_reason: str | UnsetType = UNSET
    status_code: int | UnsetType = UNSET


class GetAllocationResponse(Message, kw_only=True):
    allocation: Allocation


class AcceleratorData(Message):
    """``accelerator_type`` is cuda, rocm or cpu; ``container_id`` and ``resource_pool`` may be unknown."""

    container_id: str = ""
    allocation_id: str = ""
    node_name: str = ""
    task_id: str = ""
    accelerator_type: str = ""
    accelerator_uuids: list[str] = []
    resource_pool: str = ""


class PostAcceleratorDataRequest(Message):
    accelerator_data: AcceleratorData | None = None


class GetTaskAcceleratorDataResponse(Message, kw_only=True):
    accelerator_data: list[AcceleratorData]


class AllGatherRequest(Message):
    """``data`` is whatever a peer wants the others to know; integers in it stay integers."""

    request_uuid: str = ""
    num_peers: int = 0
    data: dict[str, Any] | None = None


class AllGatherResponse(Message):
    data: list[Any] = []


class ProxyAddressRequest(Message):
    proxy_address: str = ""


class PreemptionQuery(Message):
    """0 does not wait."""

    timeout_seconds: int = 0
    has_ended: bool = False
    """Only the log of the task is still to be delivered; jobs that wait for slots want it to leave as well."""


class PreemptionResponse(Message):
    preempt: bool = False


class NotifyContainerRunningResponse(Message):
    data: list[Any] = []
