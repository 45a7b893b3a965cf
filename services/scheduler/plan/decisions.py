"""Decisions of a plan, one per pending allocation. There may be many, hence ``gc=False`` (see snapshot.py)."""

from __future__ import annotations

from msgspec import Struct

from services.scheduler.plan.reasons import WaitReason


class Placement(Struct, frozen=True, gc=False):
    """Room for one pod. Advisory where the launcher lets somebody else place pods, as on Kubernetes."""

    node: str
    slots: int


class Start(Struct, frozen=True, gc=False):
    allocation: str
    placements: tuple[Placement, ...]
    """One per pod, in rank order."""


class Wait(Struct, frozen=True, gc=False):
    allocation: str
    reason: WaitReason


Decision = Start | Wait
