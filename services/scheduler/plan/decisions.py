"""What a plan decides. There may be many decisions, hence ``gc=False`` (see snapshot.py)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import Placement


class Start(Struct, frozen=True, gc=False):
    allocation: str
    placements: tuple[Placement, ...]
    """One per pod, in rank order."""


class Preempt(Struct, frozen=True, gc=False):
    """A running allocation is asked to leave."""

    allocation: str
    makes_room_for: str
    """The allocation that is nominated for its slots; "" when it holds more than its job may."""


class Move(Struct, frozen=True, gc=False):
    """A running trial is asked to leave, and starts again on other nodes, which are kept for it."""

    allocation: str
    placements: tuple[Placement, ...]
    makes_room_for: str
    """The allocation that is nominated for the slots that it leaves."""


class Nominate(Struct, frozen=True, gc=False):
    """Room is kept for a pending allocation until those that were asked to leave have left; () takes it back."""

    allocation: str
    placements: tuple[Placement, ...]


class Wait(Struct, frozen=True, gc=False):
    allocation: str
    reason: WaitReason
    detail: str = ""
    """What is missing, with its numbers, where that is known."""

    @property
    def sentence(self) -> str:
        """What people read."""
        return f"{self.reason}: {self.detail}" if self.detail else str(self.reason)


class Blocked(Struct, frozen=True, gc=False):
    """A pending allocation is the first of its priority that has no room."""

    allocation: str
    since: datetime
    overtaken: int
    """Allocations behind it that have started since, this plan's among them."""
    reserved: tuple[Placement, ...] = ()
    """Where free slots are kept for it, and how many on each node; () while others may pass."""
    until: datetime | None = None
    """When all of them are free, if that is known."""


class Grow(Struct, frozen=True, kw_only=True):
    """The cluster is asked for nodes, or for more of them, on which a pending allocation starts when they have come."""

    allocation: str
    pods: int
    nodes: int
    node_slots: int
    gives_up_at: datetime
    known_nodes: frozenset[str]
    places: tuple[Placement, ...] = ()
    """All as in ``Growing``."""


class EndGrowth(Struct, frozen=True):
    """The cluster is asked for nothing more on behalf of an allocation."""

    allocation: str
    gave_up: bool
    """The nodes did not come in time: others are next, and the cluster is asked again after a pause."""


Decision = Start | Wait


class Plan(Struct, frozen=True):
    """Decisions about one pool."""

    decisions: tuple[Decision, ...] = ()
    """One per pending allocation, in the order in which they were looked at."""
    preempted: tuple[Preempt, ...] = ()
    nominated: tuple[Nominate, ...] = ()
    """Where this differs from what the snapshot says."""
    blocked: tuple[Blocked, ...] = ()
    growth: Grow | EndGrowth | None = None
    """What becomes of the pool's growth; None leaves it as it is."""
    moved: tuple[Move, ...] = ()

    @property
    def starts(self) -> Iterator[Start]:
        return (one for one in self.decisions if isinstance(one, Start))

    @property
    def waits(self) -> Iterator[Wait]:
        return (one for one in self.decisions if isinstance(one, Wait))
