"""The cluster configuration (docs/reference/platform.md 18, docs/reference/scheduling.md 2): what one YAML file tells
all services.

The keys are those administrators know from ``master.yaml``. What concerns one service only (ports, database, bus) is in
that service's settings instead. ``loading`` reads the file, ``checks`` says what makes no sense together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct, field

from libs.cluster.growth import GrowthConfig
from libs.cluster.oidc import OidcConfig
from libs.config import merge_task_container_defaults
from libs.outbound.destinations import Destinations, destinations
from libs.podspec import NamespaceRules, NodeRules, PodSpecMode
from libs.podspec.reserved_labels import ALLOWED
from libs.shapes.fallback_pools import EXPECTED as EXPECTED_WAIT
from libs.shapes.fallback_pools import parse_wait
from libs.shapes.time_limits import EXPECTED, parse_time_limit

SlotType = Literal["cpu", "cuda", "rocm"]
Priority = Annotated[int, Meta(ge=1, le=99)]

SLOT_TYPES: Final[dict[str, SlotType]] = {"cpu": "cpu", "cuda": "cuda", "gpu": "cuda", "rocm": "rocm"}
"""What may be written -> what it means."""
SLOT_RESOURCE: Final[Mapping[SlotType, str]] = {"cuda": "nvidia.com/gpu", "rocm": "amd.com/gpu", "cpu": "cpu"}
"""What a slot is on Kubernetes, in pools that name nothing else."""
MAX_PORT: Final = 65535
ShareKind = Literal["workspace", "group", "user"]


class TopologyDefault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    preferred: str = ""
    """A level, in one domain of which the pods of a task run where there is room."""
    required: str = ""
    """The same, for which they wait."""


class TopologyConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    levels: tuple[str, ...]
    """Keys of labels of nodes whose values name what is near each other, the widest first: ``[example.com/zone,
    example.com/rack]``."""
    default: TopologyDefault = TopologyDefault()
    """What holds for work of several pods whose configuration has no ``resources.topology``."""


class SchedulerConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type: Literal["priority", "fair_share", "fifo", "round_robin", "kubernetes"] = "priority"
    """Who starts next: by priority and then by age; by whose share is used least; by age alone; or one job after the
    other. ``kubernetes`` is ``priority``."""
    preemption: bool = False
    """Whether work of a better priority takes the slots of other work that can be preempted. With ``fair_share`` a
    share that is used less always takes them from one that is used more."""
    default_priority: Priority | None = None
    """None is that of the kind of resource manager."""
    fitting_policy: Literal["best", "worst"] = "best"
    """Whether a task goes to the fullest node that has room for it, or to the emptiest."""
    allow_heterogeneous_fits: bool = False
    """Whether the pods of a task that needs more than ``max_slots_per_pod`` may have different numbers of slots: then
    any number of slots can be asked for. Pools whose slots are cores of Kubernetes have pods of one size."""
    share_by: tuple[ShareKind, ...] = ()
    """With ``fair_share``: who divides the pool before jobs do, the outermost first. A user in several groups counts to
    the first by name, one in none has a share beside the groups. Empty: jobs alone, by their weights."""
    half_life: int | str | None = None
    """With ``share_by``: what workspaces, groups and users have used of the pool counts beside what they hold, and
    after this time half as much; seconds, or a text such as ``7d``. None forgets at once."""
    min_runtime: Annotated[float, Meta(ge=0)] = 60
    """Seconds during which a task that has started is not preempted."""
    moves_per_hour: Annotated[int, Meta(ge=0)] = 0
    """Trials that may be moved to other nodes in an hour, so that free slots that are scattered make room for a larger
    request: a trial saves its state, and starts again where it is moved to. 0 moves none."""
    hold_limit: Annotated[float, Meta(ge=0)] = 600
    """Seconds for which free slots are kept at first for a request that is too large for them, where nobody knows when
    the rest comes free."""
    max_overtakes: Annotated[int, Meta(ge=0)] = 100
    """Requests that may start before it then, until slots are kept for it again and without an end."""
    max_overtaken_for: Annotated[float, Meta(ge=0)] = 14400
    """Seconds after which they are kept again, however few have started before it."""
    topology: TopologyConfig | None = None
    """Which nodes are near each other, for work of several pods. None is that nobody says."""

    def __post_init__(self) -> None:
        if self.half_life is None:
            return
        if parse_time_limit(self.half_life) is None:
            raise ValueError(f"half_life: {EXPECTED}")
        if self.type != "fair_share" or not self.share_by:
            raise ValueError("half_life: needs type fair_share and share_by, as use is remembered of their shares")

    @property
    def half_life_s(self) -> int | None:
        """Seconds."""
        return parse_time_limit(self.half_life)

    @property
    def preempts(self) -> bool:
        """May a job that can be preempted lose its slots to another one? (docs/reference/scheduling.md 2.3)"""
        return self.type == "fair_share" or (self.preemption and self.has_levels)

    @property
    def has_levels(self) -> bool:
        """Do priorities decide?"""
        return self.type in ("priority", "kubernetes")

    @property
    def has_line(self) -> bool:
        """Does each job have a place behind others? Where slots are shared out it has a rank only."""
        return self.type not in ("fair_share", "round_robin")


class KubernetesDefaults(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    max_slots_per_pod: int | None = None
    """Slots of one pod at most; more become several pods."""


class TaskContainerDefaults(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Merged below the configuration of every task."""

    image: Any = None
    """Image of tasks that name none: one name, or one each for ``cpu``, ``cuda`` and ``rocm``."""
    force_pull_image: bool = False
    """Pull the image for every task, though the node has it."""
    registry_auth: dict[str, Any] | None = None
    """Login of the registry of images: ``username``, ``password``, ``serveraddress``."""
    shm_size_bytes: Annotated[int, Meta(ge=0)] = 4294967296
    """Size of ``/dev/shm``."""
    network_mode: str = "bridge"
    """``host`` gives tasks the network of their node."""
    dtrain_network_interface: str = ""
    """Network interface for distributed training; empty lets the harness find one."""
    nccl_port_range: str = ""
    """Ports of NCCL, as ``first:last``."""
    gloo_port_range: str = ""
    """Ports of Gloo, as ``first:last``."""
    cpu_pod_spec: dict[str, Any] | None = None
    """Below the pod of every task without GPUs."""
    gpu_pod_spec: dict[str, Any] | None = None
    """Below the pod of every task with GPUs."""
    checkpoint_gc_pod_spec: dict[str, Any] | None = None
    """Below the pods that delete checkpoints, in place of ``cpu_pod_spec``."""
    environment_variables: Any = None
    """Variables of tasks, as in the configuration of an experiment."""
    add_capabilities: list[str] = field(default_factory=list)
    """Linux capabilities that the containers of tasks get."""
    drop_capabilities: list[str] = field(default_factory=list)
    """Linux capabilities that they lose."""
    devices: list[Any] = field(default_factory=list)
    """Devices of the host, as in ``resources.devices`` of an experiment."""
    bind_mounts: list[dict[str, Any]] = field(default_factory=list)
    """Folders of the host in every task."""
    work_dir: str | None = None
    """Folder that tasks begin in."""
    startup_hook: str = ""
    """Shell script that runs in every task before the code of its user."""
    log_policies: list[dict[str, Any]] = field(default_factory=list)
    """What follows when a line of a trial's log matches a pattern."""
    preemption_timeout: Annotated[int, Meta(gt=0)] = 3600
    """How long a task may take to leave once it was asked, in seconds; then it is killed."""
    kubernetes: KubernetesDefaults = KubernetesDefaults()


class LogsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What holds for the logs of tasks."""

    outage_wait: Annotated[float, Meta(ge=0, le=86400)] = 120.0
    """Seconds that the end of a pod waits, with the slots that it holds, while the log intake cannot be reached. The
    wait is cut short when the task is killed or preempted, or when another job waits for slots. Lines that are not
    delivered by then are lost, and the log of the task says so."""


class PoolConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pool_name: Annotated[str, Meta(min_length=1)]
    """What users write in ``resources.resource_pool``."""
    description: str = ""
    """Shown in the list of pools."""
    scheduler: SchedulerConfig | None = None
    max_aux_containers_per_agent: Annotated[int, Meta(ge=0)] = 100
    """Tasks without slots on one node at most."""
    task_container_defaults: dict[str, Any] | None = None
    """The same keys as those of the cluster's; what the pool leaves out is the cluster's."""
    logs: LogsConfig | None = None
    """None takes the cluster's."""
    kubernetes_namespace: str = ""
    """Where tasks of the pool run whose workspace is bound to no namespace."""
    slot_resource: str = ""
    """Extended resource of which one is a slot of the pool, as ``nvidia.com/mig-1g.5gb``; empty is that of
    ``resource_manager.slot_type``."""
    can_grow: bool | None = None
    """Whether nodes may come that are not there yet, by an autoscaler or by hand. What needs more slots than all nodes
    have is refused where none may, and else accepted with a warning; None is true on Kubernetes and false elsewhere."""
    growth: GrowthConfig | None = None
    """Ask an autoscaler for the nodes that a task lacks; None asks nobody. Kubernetes only."""
    bad_node_conditions: tuple[str, ...] = ()
    """Conditions of nodes on which nothing is started: ``KernelDeadlock`` where it is True, ``GpuHealthy=False`` where
    it is that."""
    bad_node_taints: tuple[str, ...] = ()
    """Taints of such nodes, whatever tasks tolerate: keys, or ``key=value``."""
    default_time_limit: int | str | None = None
    """Time limit of work whose configuration has no ``resources.time_limit``: seconds, or a text such as ``12h`` or
    ``1d12h``. None is ``max_time_limit``."""
    max_time_limit: int | str | None = None
    """The longest that work may name; more is refused when it is submitted. None is no limit."""
    fallback_wait: int | str = "10m"
    """How long work that names the pool in ``resources.fallback_pools`` without ``after`` waits in its own before it
    may also start here: seconds, or a text such as ``90m``."""

    def __post_init__(self) -> None:
        for name in ("default_time_limit", "max_time_limit"):
            if getattr(self, name) is not None and parse_time_limit(getattr(self, name)) is None:
                raise ValueError(f"{name}: {EXPECTED}")
        if parse_wait(self.fallback_wait) is None:
            raise ValueError(f"fallback_wait: {EXPECTED_WAIT}")
        if self.growth is not None and self.can_grow is False:
            raise ValueError("growth: nodes are asked for that can_grow: false says never come; leave one of them out")
        try:
            _ = self.own_defaults
        except msgspec.ValidationError as error:
            raise ValueError(f"task_container_defaults: {error}") from error

    @property
    def default_time_limit_s(self) -> int | None:
        """Seconds."""
        return parse_time_limit(self.default_time_limit)

    @property
    def max_time_limit_s(self) -> int | None:
        """Seconds."""
        return parse_time_limit(self.max_time_limit)

    @property
    def fallback_wait_s(self) -> int:
        """Seconds."""
        return parse_wait(self.fallback_wait) or 0

    @property
    def own_defaults(self) -> TaskContainerDefaults | None:
        """What the pool says, for fields that are None where it says nothing; ``defaults_of`` has the others."""
        if self.task_container_defaults is None:
            return None
        return msgspec.convert(self.task_container_defaults, TaskContainerDefaults, strict=False)


class SlotRequests(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cpu: float = 0.0
    """Cores that a slot of type ``cpu`` asks for; required for it on Kubernetes."""


class TaskGatewayConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Gateway (gateway.networking.k8s.io/v1) through which tasks are reached where their pods cannot be."""

    gateway_name: str = ""
    """Name of the Gateway."""
    gateway_namespace: str = ""
    """Its namespace."""
    gateway_ip: str = ""
    """Where the Gateway is reached; may be the name of a host."""
    gateway_port_range_start: int = 32768
    """First port of listeners for tasks."""
    gateway_port_range_end: int = 65535
    """Of listeners for tasks; both ends may be used."""


class ResourceManagerConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type: Literal["kubernetes", "process"] = "process"
    """Whether tasks are pods or processes of the launcher's machine."""
    cluster_name: str = "default"
    """Name of this cluster in the bindings of workspaces to namespaces."""
    scheduler: SchedulerConfig | None = None
    default_compute_resource_pool: str = "default"
    """Pool of tasks with slots that name none."""
    default_aux_resource_pool: str = "default"
    """Pool of tasks without slots that name none."""
    no_default_resource_pools: bool = False
    """Whoever submits something names its pool; both defaults are empty then."""
    default_namespace: str = "default"
    """Where tasks run whose workspace and pool name no namespace."""
    default_scheduler: Literal["", "coscheduler"] = ""
    """Scheduler of pods whose pod spec names none; empty leaves them to the cluster's own."""
    max_slots_per_pod: int | None = None
    """Slots of one pod at most; required on Kubernetes, here or in ``task_container_defaults.kubernetes``."""
    slot_type: str | None = None
    """One of ``SLOT_TYPES``; None is that of the kind of resource manager."""
    slot_resource_requests: SlotRequests = SlotRequests()
    internal_task_gateway: TaskGatewayConfig | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    """Anything about the cluster, shown with each pool."""

    @property
    def is_kubernetes(self) -> bool:
        """Tasks are pods of a Kubernetes cluster; otherwise they are processes."""
        return self.type == "kubernetes"

    @property
    def has_namespaces(self) -> bool:
        """Tasks run in namespaces, which workspaces are bound to and which have quotas."""
        return self.is_kubernetes

    @property
    def larger_priority_first(self) -> bool:
        """Larger priorities start first, as those of pods do; otherwise smaller ones."""
        return self.is_kubernetes

    @property
    def binds_by_itself(self) -> bool:
        """The plan only lets pods in, and the scheduler of the cluster binds them to nodes."""
        return self.is_kubernetes

    @property
    def marks_disabled_nodes(self) -> bool:
        """Nodes bear a label while they are disabled, so that no order has to name them."""
        return self.is_kubernetes


class AgentIdentity(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    user: str = "root"
    """Name of the user that tasks run as whose owner is linked to nobody."""
    uid: int = 0
    """Its number."""
    group: str = "root"
    """Name of its group."""
    gid: int = 0
    """Number of its group."""


class SshConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    key_type: Literal["ED25519", "RSA", "ECDSA"] = "ED25519"
    """Kind of the keys that tasks log in to each other with."""
    rsa_key_size: Annotated[int, Meta(ge=1024, le=16383)] = 4096
    """Bits of such a key of kind ``RSA``."""


class TokenConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of access tokens (``det token create``), whose days may be -1 for unlimited, and of what tasks are given."""

    max_lifespan_days: Annotated[int, Meta(ge=-1)] = 30
    """Longest life of an access token; -1 is unlimited."""
    default_lifespan_days: Annotated[int, Meta(ge=-1)] = 30
    """Life of an access token whose owner does not say."""
    in_tasks: Literal["user", "task"] = "user"
    """What ``DET_USER_TOKEN`` reaches: what its user does, or what is the task's own."""


class TlsConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Paths of PEM files; with both, the api serves HTTPS."""

    cert: str = ""
    """The certificate, followed by those that lead to a known authority."""
    key: str = ""
    """Its private key."""
    ca: str = ""
    """The authorities that sign it, where they are not known publicly. ``resolute up`` has tasks and clients of the
    machine trust them in place of ``cert``; the api itself does not read them."""


class CreatorRoleConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    enabled: bool = True
    """Whether who makes a workspace is given a role in it."""
    role_id: Annotated[int, Meta(ge=1)] = 2
    """Which; 2 is WorkspaceAdmin."""


class AuthzConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type: Literal["basic", "rbac", "permissive"] = "basic"
    """What decides who may do what: who owns it (``basic``) or roles (``rbac``). ``permissive`` is ``basic``, and logs
    what ``rbac`` would have refused."""
    fallback: Literal["basic"] = "basic"
    """Known from old files; there is nothing else to fall back to."""
    rbac_ui_enabled: bool | None = None
    """Whether clients offer groups and roles; None is when ``type`` is not ``basic``."""
    workspace_creator_assign_role: CreatorRoleConfig = CreatorRoleConfig()
    strict_job_queue_control: bool = False
    """Whether, with ``rbac``, jobs are moved in the queue by those only who have the permission for it."""

    @property
    def by_roles(self) -> bool:
        return self.type == "rbac"

    @property
    def shows_roles(self) -> bool:
        return self.type != "basic" if self.rbac_ui_enabled is None else self.rbac_ui_enabled


BASIC: Final = AuthzConfig()
"""Where nobody said otherwise."""


class SecurityConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    authz: AuthzConfig = AuthzConfig()
    default_task: AgentIdentity = AgentIdentity()
    initial_user_password: str = ""
    """Of ``admin`` and ``determined``, when the database is made; afterwards it changes nothing."""
    ssh: SshConfig = SshConfig()
    token: TokenConfig = TokenConfig()
    tls: TlsConfig = TlsConfig()
    release_namespace: str = ""
    """Namespace in which the services run, on Kubernetes. Users' pods there may not refer to other objects."""
    references: tuple[str, ...] = ()
    """Objects of that namespace that users' pods may refer to nevertheless: ``PersistentVolumeClaim/data-*``,
    ``Secret/registry``."""
    pod_labels: tuple[str, ...] = ALLOWED
    """Labels and annotations that users' pods may have although their kind is reserved, like ``*.kubernetes.io/*``."""
    pod_spec: PodSpecMode = "warn"
    """Which Pod Security Standard users' pods have to meet on Kubernetes: ``baseline`` or ``restricted``. ``warn``
    accepts what ``baseline`` refuses and logs it, ``free`` accepts it."""
    pod_fields: tuple[str, ...] = ()
    """Fields that users' pods may have against ``pod_spec``, such as ``spec.runtimeClassName``."""
    host_paths: tuple[str, ...] = ()
    """Directories of nodes that users may mount, with what is below them, beside that of the cluster's own
    ``checkpoint_storage``."""
    storage_addresses: tuple[str, ...] | None = None
    """Addresses that are not public and where storage that users name may be nevertheless: networks, as in
    ``10.1.0.0/16``, and endpoints, as in ``http://minio.data.svc:9000``. None is all of them where tasks are processes,
    which share the network of the services, and none of them on Kubernetes. What ``checkpoint_storage`` of this file
    names is always allowed."""

    def namespace_rules(self, namespace: str) -> NamespaceRules:
        """What users' pods may name and join in a namespace."""
        return NamespaceRules(
            namespace=namespace,
            beside_release=bool(self.release_namespace) and namespace == self.release_namespace,
            references=self.references,
            labels=self.pod_labels,
        )


class TasksConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A host name of its own for the pages of tasks, which are programs of users."""

    address: str = ""
    """Where browsers are sent for pages of tasks, as in ``https://tasks.det.example.com``: another host name than the
    main one, which leads to the same api. Empty serves them on the main address, where a page in a task can act as
    whoever looks at it; whoever comes by ``localhost`` is sent to ``tasks.localhost`` in any case."""
    main_address: str = ""
    """Where users find this installation, as in ``https://det.example.com``; its pages may show those of tasks in
    frames. Needed with ``address``."""


class WebConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The page that people look at."""

    root: str = ""
    """Folder of built files, with an ``index.html``, that the api serves below ``/det/`` in place of its own pages
    there; an absolute path. Empty serves pages for logging in and for waiting, and nothing else."""


class WebhooksConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    base_url: str = ""
    """Where users find this installation, for links in messages to Slack."""
    signing_key: str = ""
    """What requests to webhooks are signed with; without one, a key is made with the database."""
    allowed_networks: tuple[str, ...] = ()
    """Networks that are not public, as in ``10.1.0.0/16``, that webhooks may lead to nevertheless."""


class ScimAuthConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the provider of identities is known."""

    type: Literal["basic", "oauth"] = "basic"
    """By ``username`` and ``password``, or by a token of a client of ``det oauth client add``."""
    username: str = ""
    """Of ``basic``; of no account here."""
    password: str = ""
    """Of ``basic``."""


class ScimConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """SCIM 2.0, by which a provider of identities keeps users and groups as its own are."""

    enabled: bool = False
    """Whether ``/scim/v2`` answers."""
    auth: ScimAuthConfig = ScimAuthConfig()


class ClusterConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    cluster_name: str = ""
    """Shown to clients."""
    resource_manager: ResourceManagerConfig = ResourceManagerConfig()
    resource_pools: tuple[PoolConfig, ...] = (PoolConfig(pool_name="default"),)
    task_container_defaults: TaskContainerDefaults = TaskContainerDefaults()
    checkpoint_storage: dict[str, Any] | None = None
    """Where checkpoints go whose experiment does not say; as in the configuration of an experiment."""
    launch_error: bool = True
    """Refuse what needs more slots than its pool can ever have, instead of warning; ``can_grow`` of the pool says
    whether that is known."""
    security: SecurityConfig = SecurityConfig()
    feature_switches: tuple[str, ...] = ()
    """Passed on to clients. ``prevent_blank_password`` refuses a blank ``initial_user_password``, and with
    ``streaming_updates`` the api serves ``/stream``; ``-`` before a name takes back what an earlier one says."""
    reserved_ports: tuple[Annotated[int, Meta(ge=1, le=MAX_PORT)], ...] = ()
    """Never handed to tasks, though nothing here listens on them."""
    notebook_timeout: Annotated[int, Meta(ge=0)] = 0
    """Seconds without use after which notebooks are ended whose configuration has no ``idle_timeout``. 0 is never."""
    tensorboard_timeout: Annotated[int, Meta(ge=0)] = 300
    """The same of TensorBoards."""
    logs: LogsConfig = LogsConfig()
    webhooks: WebhooksConfig = WebhooksConfig()
    oidc: OidcConfig = OidcConfig()
    tasks: TasksConfig = TasksConfig()
    web: WebConfig = WebConfig()
    scim: ScimConfig = ScimConfig()

    def is_switched_on(self, feature: str) -> bool:
        """Whether the last word of ``feature_switches`` on a feature says so."""
        said = [switch for switch in self.feature_switches if switch.removeprefix("-") == feature]
        return bool(said) and said[-1] == feature

    def pool(self, name: str) -> PoolConfig | None:
        return next((pool for pool in self.resource_pools if pool.pool_name == name), None)

    @property
    def slot_type(self) -> SlotType:
        """GPUs on Kubernetes and cores of a machine, unless the file says otherwise. Raises KeyError for nonsense."""
        manager = self.resource_manager
        if manager.slot_type is None:
            return "cuda" if manager.is_kubernetes else "cpu"
        return SLOT_TYPES[manager.slot_type]

    def can_grow(self, pool_name: str) -> bool:
        """Whether a pool may get nodes that it does not have: on Kubernetes, unless the pool says otherwise."""
        pool = self.pool(pool_name)
        return self.resource_manager.is_kubernetes if pool is None or pool.can_grow is None else pool.can_grow

    def slot_resource(self, pool_name: str) -> str:
        """The resource by which Kubernetes counts the slots of a pool."""
        pool = self.pool(pool_name)
        return (pool.slot_resource if pool else "") or SLOT_RESOURCE[self.slot_type]

    @property
    def node_rules(self) -> NodeRules | None:
        """What users' pods may ask of nodes; None where nothing is judged."""
        security, storage = self.security, self.checkpoint_storage or {}
        if security.pod_spec == "free" or not self.resource_manager.is_kubernetes:
            return None
        shared = storage.get("host_path") if storage.get("type") == "shared_fs" else None
        return NodeRules(
            level="restricted" if security.pod_spec == "restricted" else "baseline",
            fields=security.pod_fields,
            host_paths=(*security.host_paths, *((shared,) if isinstance(shared, str) else ())),
        )

    @property
    def storage_destinations(self) -> Destinations | None:
        """Where the storage of users may be, beside public addresses; None where it may be anywhere."""
        named = self.security.storage_addresses
        if named is None:
            return Destinations() if self.resource_manager.is_kubernetes else None
        return destinations(named)

    @property
    def representative_pool(self) -> str:
        """The pool whose launcher is asked about what its whole cluster has: namespaces and their quotas."""
        return self.resource_manager.default_compute_resource_pool or self.resource_pools[0].pool_name

    def scheduler_of(self, pool: PoolConfig) -> SchedulerConfig:
        """A pool has a scheduler of its own or, whole, that of the resource manager
        (docs/reference/scheduling.md 2.3)."""
        return pool.scheduler or self.resource_manager.scheduler or SchedulerConfig()

    def default_priority(self, pool_name: str) -> int:
        """Priority of a job that does not say: that of the scheduler of its pool, or of the kind of resource manager.

        Source: docs/reference/scheduling.md 1; docs/reference/kubernetes.md 3.10.
        """
        pool = self.pool(pool_name)
        scheduler = self.scheduler_of(pool) if pool else self.resource_manager.scheduler
        if scheduler and scheduler.default_priority is not None:
            return scheduler.default_priority
        return 50 if self.resource_manager.is_kubernetes else 42

    def max_slots_per_pod(self, pool_name: str) -> int | None:
        """Slots that fit into one pod of the pool; None when nothing limits it."""
        pool = self.pool(pool_name)
        own = pool.own_defaults if pool else None
        candidates = (
            own.kubernetes.max_slots_per_pod if own else None,
            self.resource_manager.max_slots_per_pod,
            self.task_container_defaults.kubernetes.max_slots_per_pod,
        )
        return next((candidate for candidate in candidates if candidate is not None), None)

    def divides_slots(self, pool_name: str) -> bool:
        """Whether it is for plans to say how many slots each pod has, where one pod is not enough."""
        pool = self.pool(pool_name)
        return pool is not None and self.scheduler_of(pool).allow_heterogeneous_fits and self.pods_may_differ

    @property
    def pods_may_differ(self) -> bool:
        """Whether pods of one task may have different numbers of slots, where a pool allows it."""
        # Pods on cores ask for them beside what else they do, so a node would not have room for any division.
        return not (self.resource_manager.is_kubernetes and self.slot_type == "cpu")

    def log_outage_wait_s(self, pool_name: str) -> float:
        """What the pool says of its own, or the cluster does."""
        pool = self.pool(pool_name)
        return (pool.logs if pool is not None and pool.logs is not None else self.logs).outage_wait

    def pod_defaults(self, pool_name: str, *, has_slots: bool) -> dict[str, Any] | None:
        """Below the pods of tasks with slots, or without: of the pool or, where it says nothing, of the cluster."""
        pool, field_name = self.pool(pool_name), "gpu_pod_spec" if has_slots else "cpu_pod_spec"
        own = pool.own_defaults if pool is not None else None
        found: dict[str, Any] | None = getattr(own, field_name) if own is not None else None
        return getattr(self.task_container_defaults, field_name) if found is None else found

    def defaults_of(self, pool_name: str) -> TaskContainerDefaults:
        """The defaults of the pool over those of the cluster (docs/reference/scheduling.md 2.2;
        docs/reference/kubernetes.md 6.1)."""
        pool = self.pool(pool_name)
        if pool is None or pool.task_container_defaults is None:
            return self.task_container_defaults
        shared = msgspec.to_builtins(self.task_container_defaults)
        merged = merge_task_container_defaults(pool.task_container_defaults, shared)
        return msgspec.convert(merged, TaskContainerDefaults, strict=False)
