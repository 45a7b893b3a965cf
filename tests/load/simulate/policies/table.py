"""Table of all policies by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

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


POLICIES: Final = {
    "fifo": KnownPolicy("FIFO", Fifo),
    "easy": KnownPolicy("EASY backfill", Easy),
    "easy-true": KnownPolicy("EASY, true run times", lambda: Easy(true_times=True)),
    "pods-in-order": KnownPolicy("Pods in order", PodsInOrder),
    "resolute": KnownPolicy("Resolute, priority", lambda: Resolute(PoolPolicy())),
    "resolute-fair": KnownPolicy("Resolute, fair share", lambda: Resolute(PoolPolicy(queue="fair_share"))),
}
