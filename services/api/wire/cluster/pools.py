"""REST shapes of resource pools (docs/reference/scheduling.md 11.4). Clients require every key, so most are there and
empty."""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from services.api.wire.base import Message, Pagination, WireEnum
from services.api.wire.cluster.agents import DeviceType


class PoolType(WireEnum):
    UNSPECIFIED = "RESOURCE_POOL_TYPE_UNSPECIFIED", 0
    AWS = "RESOURCE_POOL_TYPE_AWS", 1
    GCP = "RESOURCE_POOL_TYPE_GCP", 2
    STATIC = "RESOURCE_POOL_TYPE_STATIC", 3
    K8S = "RESOURCE_POOL_TYPE_K8S", 4


class SchedulerType(WireEnum):
    UNSPECIFIED = "SCHEDULER_TYPE_UNSPECIFIED", 0
    PRIORITY = "SCHEDULER_TYPE_PRIORITY", 1
    FAIR_SHARE = "SCHEDULER_TYPE_FAIR_SHARE", 2
    ROUND_ROBIN = "SCHEDULER_TYPE_ROUND_ROBIN", 3
    KUBERNETES = "SCHEDULER_TYPE_KUBERNETES", 4


class FittingPolicy(WireEnum):
    UNSPECIFIED = "FITTING_POLICY_UNSPECIFIED", 0
    BEST = "FITTING_POLICY_BEST", 1
    WORST = "FITTING_POLICY_WORST", 2
    KUBERNETES = "FITTING_POLICY_KUBERNETES", 3


class PrioritySchedulerDetail(Message, kw_only=True):
    preemption: bool
    default_priority: int


class PoolDetail(Message):
    priority_scheduler: PrioritySchedulerDetail | UnsetType = UNSET


class QueueStats(Message):
    """Jobs that wait for slots, and jobs that have some."""

    queued_count: int = 0
    scheduled_count: int = 0


class ResourcePool(Message, kw_only=True):
    name: str
    description: str
    type: PoolType
    num_agents: int
    slots_available: int
    slots_used: int
    slot_type: DeviceType
    aux_container_capacity: int
    aux_containers_running: int
    default_compute_pool: bool
    default_aux_pool: bool
    preemptible: bool = False
    min_agents: int = 0
    max_agents: int = 0
    slots_per_agent: int = 0
    aux_container_capacity_per_agent: int
    scheduler_type: SchedulerType
    scheduler_fitting_policy: FittingPolicy
    location: str
    image_id: str = ""
    instance_type: str = "n/a"
    master_url: str = ""
    master_cert_name: str = ""
    startup_script: str = ""
    container_startup_script: str = ""
    agent_docker_network: str = ""
    agent_docker_runtime: str = ""
    agent_docker_image: str = ""
    agent_fluent_image: str = ""
    max_idle_agent_period: float = 0.0
    max_agent_starting_period: float = 0.0
    details: PoolDetail
    accelerator: str = ""
    stats: QueueStats
    resource_manager_metadata: dict[str, str] = {}
    cluster_name: str


class GetPoolsQuery(Message):
    offset: int = 0
    limit: int = 0
    unbound: bool = False


class GetPoolsResponse(Message):
    resource_pools: list[ResourcePool] = []
    pagination: Pagination = field(default_factory=Pagination)


class ResourceManagersResponse(Message):
    """Cluster names of the resource managers that are Kubernetes clusters."""

    resource_managers: list[str] = []
