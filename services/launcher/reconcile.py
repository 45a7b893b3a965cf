"""Turns orders and what exists into steps (pure).

Level-triggered: the steps follow from the present state alone, so doing them twice, or forgetting which were done,
does no harm. Absence of an order means that nothing of the allocation may exist.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from libs.events.orders import Order

WITHDRAWN_GRACE_S: Final = 15.0
"""Grace for what runs without an order (docs/reference/scheduling.md 8.2, deletion grace)."""


class Existence(Enum):
    ABANDONED = "abandoned"
    """A launcher that was killed left it in a state that only its order explains: half made, or without a trace."""
    LIVE = "live"
    """Something of it runs, or is about to."""
    ENDED = "ended"
    """Nothing of it runs any more; how it ended is still known."""


class StartStep(Struct, frozen=True):
    order: Order

    @property
    def allocation(self) -> str:
        return self.order.allocation


class StopStep(Struct, frozen=True):
    """SIGTERM, and SIGKILL ``grace_s`` later. ``ordered`` is False when there is no order at all any more."""

    allocation: str
    grace_s: float
    ordered: bool = True


class RemoveStep(Struct, frozen=True):
    """Forget how it ended, and leave nothing behind."""

    allocation: str


class ReportGoneStep(Struct, frozen=True):
    """Say that nothing exists of an allocation that was ordered to stop, for it may never have existed."""

    order: Order

    @property
    def allocation(self) -> str:
        return self.order.allocation


Step = StartStep | StopStep | RemoveStep | ReportGoneStep


def steps(
    orders: Mapping[str, Order], existing: Mapping[str, Existence], untouchable: Collection[str] = ()
) -> tuple[Step, ...]:
    """What to do, in order of allocation id; stops before everything else, for they free what starts may need.

    orders       allocation -> its order
    existing     allocation -> what there is of it
    untouchable  allocations whose order is missing, but perhaps not withdrawn; they stay as they are
    """
    found: list[Step] = []
    for allocation in sorted(orders.keys() | existing.keys()):
        step = _step(allocation, orders.get(allocation), existing.get(allocation), allocation in untouchable)
        if step is not None:
            found.append(step)
    return tuple(sorted(found, key=lambda step: not isinstance(step, StopStep)))


def _step(allocation: str, order: Order | None, existence: Existence | None, untouchable: bool) -> Step | None:
    match (order.desired if order else None, existence):
        case ("run", None | Existence.ABANDONED):
            assert order is not None
            return StartStep(order)
        case ("stop", Existence.LIVE | Existence.ABANDONED):
            assert order is not None
            return StopStep(allocation, order.grace_s)
        case ("stop", None):
            assert order is not None
            return ReportGoneStep(order)
        case (None, Existence.LIVE | Existence.ABANDONED) if not untouchable:
            return StopStep(allocation, WITHDRAWN_GRACE_S, ordered=False)
        case (None, Existence.ENDED) if not untouchable:
            return RemoveStep(allocation)
        case _:
            return None  # it is as ordered
