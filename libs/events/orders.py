"""Orders: the state the scheduler wants one allocation to be in; the launcher of its pool makes it so.

An order is a value in the KV bucket ``ORDERS``, not a message: a launcher that was away reads what is there now.
The order says what the task *is*; environment, files and manifests are made of it in the launcher, for all backends.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

TaskType = Literal["TRIAL", "NOTEBOOK", "SHELL", "COMMAND", "TENSORBOARD", "CHECKPOINT_GC", "GENERIC"]


class Owner(Struct, frozen=True, kw_only=True):
    """Who the task runs as: the Resolute user, and the POSIX identity inside the container."""

    username: str
    uid: int = 0
    user: str = "root"
    gid: int = 0
    group: str = "root"


class ProxyPort(Struct, frozen=True, kw_only=True):
    service_id: str
    port: int
    proxy_tcp: bool = False
    unauthenticated: bool = False


class BindMount(Struct, frozen=True, kw_only=True):
    host_path: str
    container_path: str
    """Relative paths are meant relative to the working directory of the task."""
    read_only: bool = False
    propagation: str = "rprivate"


class Environment(Struct, frozen=True, kw_only=True):
    """The user's ``environment`` section, already resolved for the slot type of the allocation."""

    image: str = ""
    variables: tuple[str, ...] = ()
    """``K=V`` in the user's order; an entry without ``=`` is a variable with an empty value."""
    force_pull_image: bool = False
    registry_auth: dict[str, str] | None = None
    pod_spec: dict[str, Any] | None = None
    add_capabilities: tuple[str, ...] = ()
    drop_capabilities: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    """What else the task listens on, by its owner's word; nothing is done about it but to say so."""


class UsersPod(Struct, frozen=True, kw_only=True):
    """What users wrote of a task's pod, as it was when they submitted it, without what administrators set."""

    pod: dict[str, Any] = {}
    """Pod specs of a template, of what was submitted and of what the workspace fixes, merged; without directives."""
    judged: bool = True
    """Whether the submission was held against ``security.pod_spec``: not so where tasks were no pods at that time."""
    asks: tuple[str, ...] = ()
    """What ``security.pod_spec: baseline`` would have refused and ``warn`` accepted: a sentence for each field."""


class TaskFile(Struct, frozen=True, kw_only=True):
    """A file of this one task below ``/run/determined``; what every task of a type gets is not listed here."""

    path: str
    content: bytes
    mode: int = 0o600


class TrialTask(Struct, frozen=True, kw_only=True):
    experiment_id: int
    trial_id: int
    trial_run_id: int
    seed: int
    config: dict[str, Any]
    """The experiment's complete stored configuration."""
    hparams: dict[str, Any]
    steps_completed: int = 0
    latest_checkpoint: str | None = None
    ssh_private_key: str = ""
    ssh_public_key: str = ""


class TaskSpec(Struct, frozen=True, kw_only=True):
    """Everything a launcher needs to run one allocation, and nothing about any other."""

    task: str
    task_type: TaskType
    name: str
    """What users read, as in ``Trial 3 (Experiment 1)``."""
    description: str
    """What operators read in names of objects, as in ``exp-1-trial-3-attempt-1``."""
    cluster_id: str
    workspace: str = ""
    owner: Owner
    slots: int
    """Slots over all pods; 0 is an auxiliary task."""
    num_pods: int = 1
    pod_slots: tuple[int, ...] = ()
    """Slots of each pod, the largest first, where they differ; () where each pod has as many as any other."""
    pod_nodes: tuple[str, ...] = ()
    """Where the planner saw room for each of ``pod_slots``: on any other node a pod might take the place of another."""
    session_token: str
    user_token: str
    environment: Environment = Environment()
    users_pod: UsersPod | None = None
    """Of which the launcher judges what depends on where the pod runs. Orders of tasks that were submitted to a
    release before have none, and go on."""
    trial: TrialTask | None = None
    argv: tuple[str, ...] = ()
    """Arguments of the entrypoint script of the task type; empty for trials."""
    extra_environment: tuple[tuple[str, str], ...] = ()
    files: tuple[TaskFile, ...] = ()
    work_dir: str | None = None
    startup_hook: str = ""
    bind_mounts: tuple[BindMount, ...] = ()
    shared_fs_host_path: str | None = None
    """Host directory that the task sees as ``/determined_shared_fs``."""
    proxy_ports: tuple[ProxyPort, ...] = ()
    ports: dict[str, int] = {}
    """Ports reserved for this allocation, by environment variable (``DTRAIN_SSH_PORT`` ...)."""
    network_mode: str = "bridge"
    shm_size_bytes: int | None = None
    blocked_nodes: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    """The only ones that its pods may run on, where pods have to be near each other; () is all."""
    preferred_nodes: tuple[str, ...] = ()
    """Where the planner saw room for pods that may run anywhere."""
    priority: int | None = None
    submitted_at: datetime | None = None
    """When the job of the task was submitted."""
    queue_position: str = ""
    """Where the job stands instead, after it was moved in the queue (libs/job_rank.py); a whole number."""
    log_outage_wait_s: float = 120.0
    """How long the end of a pod waits for a log intake that cannot be reached."""
    traceparent: str | None = None
    """Trace context of the decision to start it; the task gets it as ``TRACEPARENT``."""

    @property
    def slots_by_pod(self) -> tuple[int, ...]:
        """Of each pod, in rank order."""
        return self.pod_slots or (self.slots_per_pod,) * self.num_pods

    @property
    def slots_per_pod(self) -> int:
        """Of the largest pod, where they differ."""
        return self.pod_slots[0] if self.pod_slots else self.slots // self.num_pods


class Order(Struct, frozen=True, kw_only=True, tag_field="type", tag="order"):
    """Run this, or stop it. Absence of an order means that nothing of the allocation may exist."""

    allocation: str
    pool: str
    desired: Literal["run", "stop"]
    spec: TaskSpec | None = None
    """Present when ``desired`` is ``run``."""
    grace_s: float = 15.0
    """With ``stop``: seconds between SIGTERM and SIGKILL."""
    reason: str = ""
    random_part: str = ""
    """End of the names of the Secrets and ConfigMaps that are made for it (``new_random_part``), drawn once: nobody
    else can guess them. Orders of releases that drew none name these objects like the Job."""
    namespace: str = ""
    """Where the workspace of the task is bound to; empty is the namespace of the pool. Stays the same for all orders of
    an allocation."""


class PlaceholderOrder(Struct, frozen=True, kw_only=True, tag_field="type", tag="placeholders"):
    """Placeholders of a pool: pods that hold room for a task on nodes which an autoscaler has yet to add.

    A value in the same bucket under a key of its own; a pool has one at most, and without it nothing of the kind may
    exist. Launchers of releases that know of no placeholders do not look at the key.
    """

    pool: str
    allocation: str
    """For which room is held."""
    pods: int
    requests: dict[str, int] = {}
    """Of each pod: ``cpu`` in thousandths of a core, memory and storage in bytes, everything else in pieces."""
    node_selector: dict[str, str] = {}
    affinity_terms: tuple[dict[str, Any], ...] | None = None
    """``nodeSelectorTerms`` of the required node affinity; None where there is none."""
    tolerations: tuple[dict[str, str], ...] = ()
    known_nodes: tuple[str, ...] = ()
    """Nodes on which the pods must not be: those that were there before."""
    gives_up_at: datetime
    """From then on there is nothing to hold, whether or not somebody says so."""
