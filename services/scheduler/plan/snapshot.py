"""Snapshot that a plan is made from: everything that matters about one pool at one moment.

There may be a hundred thousand of these structs. They hold nothing that could hold them, so the garbage collector need
not look at them (``gc=False``); it would take as long as the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from msgspec import Struct

from services.scheduler.plan.nodes.requirements import PodRequirements
from services.scheduler.plan.nodes.shapes import ShapedNode
from services.scheduler.plan.topology.levels import TopologyRequest

FittingPolicy = Literal["best", "worst"]
QueuePolicy = Literal["priority", "fair_share", "fifo", "round_robin"]
EPOCH: Final = datetime.fromtimestamp(0, tz=UTC)
NEVER: Final = datetime.max.replace(tzinfo=UTC)


class NodeSlots(Struct, frozen=True, kw_only=True, gc=False):
    """A node as far as tasks are concerned; what anything else holds is already subtracted."""

    name: str
    slots: int
    """Slots that allocations may hold together."""
    lent: int = 0
    """Those of them that tasks of other pools hold; they come back."""
    max_aux: int
    """Pods without slots that may run side by side."""
    available: bool = True
    """False when nothing new may start there: disabled, draining, or excluded by an administrator."""
    shaped: ShapedNode | None = None
    """What is known of it beyond slots; None where nothing is: then any pod may run there."""
    domains: tuple[str, ...] = ()
    """Its values of the labels of ``PoolSnapshot.levels``, "" where it has none; () where it has none of them."""


class Placement(Struct, frozen=True, gc=False):
    """Room for one pod. Advisory where the launcher lets the cluster's scheduler place pods."""

    node: str
    slots: int


class Maintenance(Struct, frozen=True, kw_only=True, gc=False):
    """A time in which nothing runs on some nodes."""

    nodes: frozenset[str]
    starts_at: datetime
    ends_at: datetime
    text: str
    """What those are told who wait for its end."""


class HeldAllocation(Struct, frozen=True, kw_only=True, gc=False):
    """An allocation that has its slots."""

    allocation: str
    job: str
    pods: tuple[tuple[str, int], ...]
    """Node and slots of each pod that has not ended; a node may be unknown by now."""
    namespace: str = ""
    """Whose quota it counts against; "" is the namespace of the pool."""
    limits: tuple[str, ...] = ()
    """Keys of the shared limits that it counts against, in their order."""
    share: str = ""
    """Who has it under fair share: path of the user, group or workspace; "" is the job."""
    priority: int = 0
    submitted_at: datetime = EPOCH
    """When its job was submitted."""
    requested_at: datetime = EPOCH
    position: int | None = None
    """Where its job was moved to in the queue (libs/job_rank.py)."""
    preemptible: bool = False
    leaving: bool = False
    """It was asked to leave, or killed: its slots come free."""
    started_at: datetime = EPOCH
    saved_at: datetime | None = None
    """Of its last checkpoint: what it has done since is lost with it."""
    ends_at: datetime | None = None
    """When it is over at the latest, as its owner has declared."""
    expected: timedelta | None = None
    """How long it was expected to run when it started."""
    needs: PodRequirements | None = None
    topology: TopologyRequest | None = None
    most_per_pod: int = 0
    """As in ``PendingAllocation``, all three."""
    movable: bool = False
    """It may be asked to leave and start again elsewhere: all of its pods run code that saves its state."""
    blocked_nodes: frozenset[str] = frozenset()

    @property
    def slots(self) -> int:
        pods = self.pods
        return pods[0][1] if len(pods) == 1 else sum(slots for _, slots in pods)


class PendingAllocation(Struct, frozen=True, kw_only=True, gc=False):
    """An allocation that waits for its slots."""

    allocation: str
    job: str
    pods: tuple[int, ...]
    """Slots of each pod, in rank order; the pods of a request are of one size, 0 for an auxiliary task."""
    most_per_pod: int = 0
    """Not 0: how many pods there are is for the plan to say, of so many slots at most, not all alike where need be;
    ``pods`` are its slots one by one."""
    priority: int
    submitted_at: datetime
    """When its job was submitted."""
    requested_at: datetime
    position: int | None = None
    """As in ``HeldAllocation``."""
    blocked_nodes: frozenset[str] = frozenset()
    needs: PodRequirements | None = None
    """What each pod requires of a node; None is slots alone."""
    topology: TopologyRequest | None = None
    """How near to each other its pods are to be; of a single pod this says nothing."""
    namespace: str = ""
    limits: tuple[str, ...] = ()
    share: str = ""
    """As in ``HeldAllocation``, all three."""
    preemptible: bool = False
    runs_for: timedelta | None = None
    """At most, as its owner has declared."""
    expected: timedelta | None = None
    """How long it is expected to run, by what its owner ran before; nobody is held to it."""
    asked_before: timedelta = timedelta()
    """How long before maintenance it would be asked to leave."""
    closed_nodes: frozenset[str] = frozenset()
    """Those of ``blocked_nodes`` that are closed to it because of maintenance; plans say so themselves."""
    nominated: tuple[Placement, ...] = ()
    """Room that others were asked to leave for it."""
    blocked_at: datetime | None = None
    """Since when it is the first of its priority that has no room."""
    overtaken: int = 0
    """Allocations behind it that have started since."""
    preempted: int = 0
    """How often its task was preempted lately."""
    grows: bool = False
    """The pool grows for it, so that nobody is asked to leave. Plans say so themselves."""
    kept_slots: int = 0
    """Slots of those of its pods that are not among ``pods``, as their places are held for it. As above."""
    moved: bool = False
    """Its task was moved to the nodes that it is nominated for."""
    not_before: datetime | None = None
    """When it may start in this pool, as it waits in another one until then. Forecasts alone see such requests."""

    @property
    def slots(self) -> int:
        return self.pods[0] * len(self.pods)

    def may_have(self, places: tuple[Placement, ...]) -> bool:
        """Whether ``places`` have the sizes of its pods, as its pool's setting is now."""
        sizes = sorted(place.slots for place in places)
        if not self.most_per_pod:
            return sizes == sorted(self.pods)
        return sum(sizes) == self.slots and sizes[-1] <= self.most_per_pod


class SlotLimit(Struct, frozen=True, kw_only=True, gc=False):
    """Slots that a user, a group or a workspace may hold at once."""

    holder: str
    """In words, as in ``user ann``."""
    where: str = ""
    """The pool that it is for, in words; "" is the whole cluster."""
    most: int
    elsewhere: int = 0
    """Slots that it holds in other pools, where those count."""
    leaving: int = 0
    """Those of them whose holders were asked to leave."""
    preempts: bool = False
    """Whether those leave that hold more, as after the limit was lowered. Otherwise nothing new starts."""


class HourLimit(Struct, frozen=True, kw_only=True, gc=False):
    """Slot-seconds that a user, a group or a workspace may use in a calendar period."""

    holder: str
    where: str = ""
    """As in ``SlotLimit``, both."""
    period: str
    """In words, as in ``week``."""
    most_s: float
    spent_s: float = 0.0
    """Of what has run in the period, to its end or until now."""
    rest_s: float = 0.0
    """What those that run may still use, as far as they say how long they run."""
    next_at: datetime
    """When the next period begins."""
    preempts: bool = False
    """Whether those leave that do not say how long they run, when all is used. Otherwise nothing new starts."""


class Growing(Struct, frozen=True, kw_only=True):
    """A request for which the cluster was asked to add nodes."""

    allocation: str
    pods: int
    """Of it, that are to run on nodes which are not there yet."""
    nodes: int
    """How many those are, if they are as expected."""
    node_slots: int
    """Slots of each."""
    gives_up_at: datetime
    known_nodes: frozenset[str]
    """Nodes of the pool when the cluster was asked; all others have come for this request."""
    places: tuple[Placement, ...] = ()
    """Held for its other pods on nodes that were there."""


class Growth(Struct, frozen=True, kw_only=True):
    """How a pool grows, and for whom it does."""

    deadline: timedelta
    """How long the cluster may take to add nodes."""
    template: NodeSlots | None = None
    """A node that would come, without a name; None where those that are there have to tell."""
    max_nodes: int | None = None
    """Of the pool at most."""
    now: Growing | None = None
    rests_until: Mapping[str, datetime] = {}
    """Of allocations for which nodes did not come in time: when the cluster may be asked again."""


class PoolPolicy(Struct, frozen=True, kw_only=True):
    """How a pool is planned."""

    queue: QueuePolicy = "priority"
    preemption: bool = False
    fitting: FittingPolicy = "best"
    larger_priority_first: bool = False
    """Kubernetes pools: larger is more important. All others: smaller is. Source: docs/reference/scheduling.md 0
    (3)."""
    min_runtime: timedelta = timedelta()
    """An allocation that has run for less is not preempted."""
    hold_limit: timedelta = timedelta(minutes=10)
    """How long free slots are kept at first for a request that is blocked, where nobody knows when the rest comes
    free."""
    max_overtakes: int = 100
    """Allocations behind a blocked request that may start before slots are kept for it without an end."""
    max_overtaken_for: timedelta = timedelta(hours=4)
    """Time after which they are, however few have started."""

    @property
    def preempts(self) -> bool:
        return self.preemption or self.queue == "fair_share"


class PoolSnapshot(Struct, frozen=True, kw_only=True):
    nodes: tuple[NodeSlots, ...] | None
    """None when the launcher of the pool has not said yet what it has: then nothing starts."""
    held: tuple[HeldAllocation, ...] = ()
    pending: tuple[PendingAllocation, ...] = ()
    moving: tuple[HeldAllocation, ...] = ()
    """Places that are kept for those that were moved, and that have not left yet: they are held twice."""
    moves_left: int = 0
    """Trials that may be moved now, so that free slots that are scattered make room for a request."""
    max_slots_by_job: Mapping[str, int] = {}
    """Of jobs that have a limit: slots that they may hold together."""
    quota_slots: int | None = None
    """Slots that may be held in the pool's own namespace, where less than its nodes have."""
    quota_by_namespace: Mapping[str, int] = {}
    """The same for namespaces of workspaces that have a quota."""
    limits: Mapping[str, SlotLimit | HourLimit] = {}
    """Of users, groups and workspaces, by the keys that allocations name."""
    weights: Mapping[str, float] = {}
    """Of shares under fair share, where it is not 1."""
    past_use: Mapping[str, float] = {}
    """Slots that shares have used on average, by their paths, where fair share remembers that."""
    half_life: timedelta | None = None
    """After which it counts half as much; None where nothing is remembered."""
    policy: PoolPolicy = PoolPolicy()
    growth: Growth | None = None
    """None where nobody is asked for nodes."""
    maintenance: tuple[Maintenance, ...] = ()
    levels: tuple[str, ...] = ()
    """Of its topology: keys of labels of nodes, the widest first."""
    now: datetime = EPOCH
