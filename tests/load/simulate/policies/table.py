"""Table of all policies by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct

from services.scheduler.plan.snapshot import PoolPolicy
from tests.load.simulate.engine.simulation import Policy
from tests.load.simulate.policies.easy import Easy
from tests.load.simulate.policies.fifo import Fifo
from tests.load.simulate.policies.pods_in_order import PodsInOrder
from tests.load.simulate.policies.resolute import Resolute


class KnownPolicy(Struct, frozen=True):
    title: str
    """As tables and plots name it."""
    make: Callable[[], Policy]


SAFE_AT_FIRST: Final = timedelta(minutes=1)
"""``min_runtime`` of a pool, unless it says otherwise."""


def _resolute(**policy: Any) -> Resolute:
    return Resolute(PoolPolicy(min_runtime=SAFE_AT_FIRST, **policy))


POLICIES: Final = {
    "fifo": KnownPolicy("FIFO", Fifo),
    "easy": KnownPolicy("EASY backfill", Easy),
    "easy-true": KnownPolicy("EASY, true run times", lambda: Easy(true_times=True)),
    "pods-in-order": KnownPolicy("Pods in order", PodsInOrder),
    "resolute": KnownPolicy("Resolute, priority", _resolute),
    "resolute-preempt": KnownPolicy("Resolute, preemption", lambda: _resolute(preemption=True)),
    "resolute-fifo": KnownPolicy("Resolute, FIFO", lambda: _resolute(queue="fifo")),
    "resolute-robin": KnownPolicy("Resolute, round robin", lambda: _resolute(queue="round_robin")),
    "resolute-fair": KnownPolicy("Resolute, fair share", lambda: _resolute(queue="fair_share")),
}
