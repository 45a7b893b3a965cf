"""An allocation that starts, and one that goes back to the queue: what it keeps of what plans know of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from services.scheduler.plan.snapshot import HeldAllocation, PendingAllocation

_KEPT: Final = sorted(
    {*HeldAllocation.__struct_fields__} & {*PendingAllocation.__struct_fields__} - {"pods", "requested_at"}
)


def started(request: PendingAllocation, pods: Iterable[tuple[str, int]], **changes: Any) -> HeldAllocation:
    """``request`` with its ``pods`` (node and slots of each) in place; ``changes`` of its fields."""
    return HeldAllocation(**{**_kept(request), "requested_at": request.requested_at, "pods": tuple(pods), **changes})


def queued_again(held: HeldAllocation, pods: Iterable[int], **changes: Any) -> PendingAllocation:
    """``held`` as a request for ``pods`` (slots of each); ``changes`` of its fields."""
    return PendingAllocation(**{**_kept(held), "requested_at": held.requested_at, "pods": tuple(pods), **changes})


def _kept(one: HeldAllocation | PendingAllocation) -> dict[str, Any]:
    return {name: getattr(one, name) for name in _KEPT}
