"""Decisions of a policy. Each is carried out before the policy is asked for the next one."""

from __future__ import annotations

from msgspec import Struct


class Begin(Struct, frozen=True, gc=False):
    """Run the job, with a pod on each of ``nodes`` in the order of its pods."""

    job: int
    nodes: tuple[int, ...]


class Bind(Struct, frozen=True, gc=False):
    """Give one pod of a waiting job its slots, although the job does not run yet."""

    job: int
    node: int


class Evict(Struct, frozen=True, gc=False):
    """Stop a running job. It waits again, goes on from its last checkpoint, and everything is planned anew."""

    job: int


class Foresee(Struct, frozen=True, gc=False):
    """The instant at which a waiting job is expected to start. Of several for one job, the first is held against it."""

    job: int
    start_s: float


PolicyDecision = Begin | Bind | Evict | Foresee
