"""REST shapes of nodes ("agents") and their slots (docs/reference/scheduling.md 11.1)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from services.api.wire.base import Message, Pagination, Timestamp, WireEnum
from services.api.wire.ordering import OrderBy


class DeviceType(WireEnum):
    UNSPECIFIED = "TYPE_UNSPECIFIED", 0
    CPU = "TYPE_CPU", 1
    CUDA = "TYPE_CUDA", 2
    ROCM = "TYPE_ROCM", 3


class ContainerState(WireEnum):
    UNSPECIFIED = "STATE_UNSPECIFIED", 0
    ASSIGNED = "STATE_ASSIGNED", 1
    PULLING = "STATE_PULLING", 2
    STARTING = "STATE_STARTING", 3
    RUNNING = "STATE_RUNNING", 4
    TERMINATED = "STATE_TERMINATED", 5


class Device(Message):
    id: int = 0
    brand: str = ""
    uuid: str = ""
    type: DeviceType = DeviceType.UNSPECIFIED


class Container(Message, kw_only=True):
    parent: str = ""
    id: str
    state: ContainerState
    devices: list[Device] = []
    permission_denied: bool = False


class Slot(Message, kw_only=True):
    """``container`` is null for a free slot."""

    id: str
    device: Device
    enabled: bool
    container: Container | None = None
    draining: bool


class DeviceStats(Message):
    """``states`` counts the occupied ones by state of their container."""

    states: dict[str, int] = {}
    draining: int = 0
    disabled: int = 0
    total: int = 0


class SlotStats(Message):
    type_stats: dict[str, DeviceStats] = {}
    brand_stats: dict[str, DeviceStats] = {}


class Agent(Message, kw_only=True):
    id: str
    registered_time: Timestamp | None = None
    slots: dict[str, Slot] = {}
    containers: dict[str, Container] = {}
    addresses: list[str] = []
    enabled: bool
    draining: bool
    version: str = ""
    resource_pools: list[str] = []
    slot_stats: SlotStats


class SortAgents(WireEnum):
    UNSPECIFIED = "SORT_BY_UNSPECIFIED", 0
    ID = "SORT_BY_ID", 1
    TIME = "SORT_BY_TIME", 2


class GetAgentsQuery(Message):
    sort_by: SortAgents = SortAgents.UNSPECIFIED
    order_by: OrderBy = OrderBy.UNSPECIFIED
    offset: int = 0
    limit: int = 0
    exclude_slots: bool = False
    exclude_containers: bool = False


class GetAgentQuery(Message):
    exclude_slots: bool = False
    exclude_containers: bool = False


class GetAgentsResponse(Message):
    agents: list[Agent] = []
    pagination: Pagination = field(default_factory=Pagination)


class AgentResponse(Message, kw_only=True):
    agent: Agent


class SlotsResponse(Message):
    slots: list[Slot] = []


class SlotResponse(Message, kw_only=True):
    slot: Slot


class DisableAgentRequest(Message):
    """``drain`` lets what runs there finish."""

    agent_id: str | UnsetType = UNSET
    drain: bool = False
