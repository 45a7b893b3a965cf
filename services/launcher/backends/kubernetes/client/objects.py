"""Objects of the Kubernetes API, as far as this launcher reads them: whatever it does not need is never decoded.

Field names are those of the API (camelCase on the wire). Source:
https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.34/.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct, field

T = TypeVar("T")


class _Object(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    pass


class Labels(_Object, frozen=True, kw_only=True):
    """The labels that matter, of whatever kind of object."""

    allocation: str = field(name="determined", default="")
    launcher: str = field(name="resolute/launcher", default="")
    system: str = field(name="determined-system", default="")
    placeholder: str = field(name="resolute/placeholder", default="")
    job: str = field(name="batch.kubernetes.io/job-name", default="")
    old_job: str = field(name="job-name", default="")
    """What Kubernetes before 1.27 calls ``batch.kubernetes.io/job-name``."""
    job_uid: str = field(name="batch.kubernetes.io/controller-uid", default="")
    old_job_uid: str = field(name="controller-uid", default="")
    preemption: str | None = field(name="determined-preemption", default=None)
    """Whatever it says, the pod is wanted to leave."""


class Annotations(_Object, frozen=True, kw_only=True):
    allocation: str = field(name="resolute/allocation", default="")
    task: str = field(name="resolute/task", default="")
    slots_per_pod: str = field(name="resolute/slots-per-pod", default="")
    jobs: str = field(name="resolute/jobs", default="")
    outcome: str = field(name="resolute/outcome", default="")
    made_of: str = field(name="resolute/made-of", default="")


class Meta(_Object, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    """When it may be gone: ``deletion_grace_period_seconds`` after somebody asked for that."""
    deletion_grace_period_seconds: int | None = None
    labels: Labels = Labels()
    annotations: Annotations = Annotations()


class Condition(_Object, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class JobSpec(_Object, frozen=True, kw_only=True):
    parallelism: int = 1
    completions: int | None = None


class JobStatus(_Object, frozen=True, kw_only=True):
    active: int = 0
    conditions: tuple[Condition, ...] = ()


class Job(_Object, frozen=True, kw_only=True):
    metadata: Meta
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class VolumeSource(_Object, frozen=True, kw_only=True):
    name: str = ""


class Volume(_Object, frozen=True, kw_only=True):
    config_map: VolumeSource | None = None


class VolumesSpec(_Object, frozen=True, kw_only=True):
    volumes: tuple[Volume, ...] = ()


class VolumesTemplate(_Object, frozen=True, kw_only=True):
    spec: VolumesSpec = VolumesSpec()


class VolumesJobSpec(_Object, frozen=True, kw_only=True):
    template: VolumesTemplate = VolumesTemplate()


class JobVolumes(_Object, frozen=True, kw_only=True):
    """A Job of which only what its pods mount matters."""

    spec: VolumesJobSpec = VolumesJobSpec()

    @property
    def config_maps(self) -> set[str]:
        """Names of the ConfigMaps among it."""
        return {each.config_map.name for each in self.spec.template.spec.volumes if each.config_map is not None}


class Waiting(_Object, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class Running(_Object, frozen=True, kw_only=True):
    started_at: str | None = None


class Terminated(_Object, frozen=True, kw_only=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    finished_at: str | None = None


class ContainerState(_Object, frozen=True, kw_only=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(_Object, frozen=True, kw_only=True):
    name: str = ""
    image: str = ""
    image_id: str = field(name="imageID", default="")
    container_id: str = field(name="containerID", default="")
    """With the name of the runtime: ``containerd://`` and the id."""
    restart_count: int = 0
    state: ContainerState = ContainerState()


class Resources(_Object, frozen=True, kw_only=True):
    requests: dict[str, str | int | float] | None = None
    limits: dict[str, str | int | float] | None = None


class Container(_Object, frozen=True, kw_only=True):
    name: str = ""
    resources: Resources = Resources()
    restart_policy: str = ""


class PodSpec(_Object, frozen=True, kw_only=True):
    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str | int | float] | None = None


class TaskPodSpec(PodSpec, frozen=True, kw_only=True):
    """Of a pod of ours; of other pods, which may be many more, less is kept."""

    scheduler_name: str = ""


class PodIp(_Object, frozen=True, kw_only=True):
    ip: str = ""


class PodStatus(_Object, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = field(name="podIP", default="")
    pod_ips: tuple[PodIp, ...] = field(name="podIPs", default=())
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class Pod(_Object, frozen=True, kw_only=True):
    metadata: Meta
    spec: TaskPodSpec = TaskPodSpec()
    status: PodStatus = PodStatus()

    @property
    def job(self) -> str:
        """Name of the Job that made it; empty for other pods."""
        return self.metadata.labels.job or self.metadata.labels.old_job

    @property
    def job_uid(self) -> str:
        """Uid of that Job: another one of the same name may have followed it."""
        return self.metadata.labels.job_uid or self.metadata.labels.old_job_uid


class Phase(_Object, frozen=True, kw_only=True):
    phase: str = ""


class SlimPod(_Object, frozen=True, kw_only=True):
    """A pod of somebody else: what it asks for, and where."""

    metadata: Meta
    spec: PodSpec = PodSpec()
    status: Phase = Phase()


class InvolvedObject(_Object, frozen=True, kw_only=True):
    kind: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""
    """Of the container, as in ``spec.containers{main}``, where the event is about one."""


class Event(_Object, frozen=True, kw_only=True):
    metadata: Meta
    involved_object: InvolvedObject = InvolvedObject()
    reason: str = ""
    message: str = ""
    type: str = ""
    first_timestamp: str | None = None
    event_time: str | None = None


class Taint(_Object, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeAddress(_Object, frozen=True, kw_only=True):
    address: str = ""


class NodeSpec(_Object, frozen=True, kw_only=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(_Object, frozen=True, kw_only=True):
    allocatable: dict[str, str | int | float] = {}
    addresses: tuple[NodeAddress, ...] = ()
    conditions: tuple[Condition, ...] = ()


class NodeMeta(_Object, frozen=True, kw_only=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    labels: dict[str, str] = {}


class Node(_Object, frozen=True, kw_only=True):
    metadata: NodeMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ResourceSliceSpec(_Object, frozen=True, kw_only=True):
    node_name: str = ""
    """Empty for devices that several nodes reach."""


class ResourceSlice(_Object, frozen=True, kw_only=True):
    """Devices that a driver offers by Dynamic Resource Allocation."""

    metadata: Meta
    spec: ResourceSliceSpec = ResourceSliceSpec()


class ApiVersion(_Object, frozen=True, kw_only=True):
    version: str = ""


class ApiGroup(_Object, frozen=True, kw_only=True):
    preferred_version: ApiVersion = ApiVersion()


class QuotaSpec(_Object, frozen=True, kw_only=True):
    hard: dict[str, str | int | float] = {}


class QuotaStatus(_Object, frozen=True, kw_only=True):
    hard: dict[str, str | int | float] = {}
    used: dict[str, str | int | float] = {}


class ResourceQuota(_Object, frozen=True, kw_only=True):
    metadata: Meta
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


class NamespaceMeta(_Object, frozen=True, kw_only=True):
    name: str = ""
    uid: str = ""
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}


class Namespace(_Object, frozen=True, kw_only=True):
    metadata: NamespaceMeta = NamespaceMeta()


class Named(_Object, frozen=True, kw_only=True):
    """Any object of which only the name matters."""

    metadata: Meta


class LeaseSpec(_Object, frozen=True, kw_only=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(_Object, frozen=True, kw_only=True):
    metadata: Meta
    spec: LeaseSpec = LeaseSpec()


class ListMeta(_Object, frozen=True, kw_only=True):
    resource_version: str = ""
    continue_: str | None = field(name="continue", default=None)


class ListOf(_Object, Generic[T], frozen=True, kw_only=True):
    metadata: ListMeta = ListMeta()
    items: tuple[T, ...] | None = ()
    """Null where a list of nothing is meant."""


class WatchEvent(_Object, Generic[T], frozen=True, kw_only=True):
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: T


class WatchKind(_Object, frozen=True, kw_only=True):
    """What every line of a watch says first; its object depends on it."""

    type: str


class Status(_Object, frozen=True, kw_only=True):
    """What the API server answers when something is not as it should be."""

    message: str = ""
    reason: str = ""
    code: int = 0


class WatchFailure(_Object, frozen=True, kw_only=True):
    object: Status = Status()


class VersionOnly(_Object, frozen=True, kw_only=True):
    resource_version: str


class Versioned(_Object, frozen=True, kw_only=True):
    metadata: VersionOnly


class Bookmark(_Object, frozen=True, kw_only=True):
    """Where a watch has come to. Everything else of its object may be null, whatever the kind of object allows."""

    object: Versioned


Json = dict[str, Any]
