"""Protocol of a place that runs task containers; everything above it is the same code for all of them.

A backend keeps what it needs to know across restarts in the place itself, so that a launcher that was killed finds
everything again. All calls are idempotent: the launcher repeats them when it does not know whether they succeeded.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol

from libs.events.capacity import PoolCapacity
from libs.events.observations import AllocationObserved
from libs.events.orders import Order, PlaceholderOrder
from services.launcher.cluster_admin import ClusterAdmin
from services.launcher.reconcile import Existence


class Backend(Protocol):
    @property
    def cluster_admin(self) -> ClusterAdmin: ...

    async def existing(self) -> Mapping[str, Existence]:
        """Every allocation of which something exists, or whose end is still known, as far as the backend has looked."""
        ...

    async def seek(self, order: Order) -> bool:
        """Whether anything of an order's allocation exists, also where ``existing`` has not looked yet."""
        ...

    async def start(self, order: Order) -> None:
        """Begin to run an order of kind ``run``, or go on where another launcher was killed.

        What cannot run ends at once, and ``observe`` says why.
        """
        ...

    async def stop(self, allocation: str, *, grace_s: float, ordered: bool) -> None:
        """Ask all pods to end, and kill what remains ``grace_s`` later; returns without waiting for that.

        A second call with a shorter grace shortens it. What has not started yet never will.
        """
        ...

    async def remove(self, allocation: str) -> None:
        """Leave nothing of an allocation that has ended; returns when it is done.

        May wait, within bounds, until what the allocation printed has been delivered.
        """
        ...

    async def observe(self, allocation: str) -> AllocationObserved | None:
        """All pods as they are now, with revision 0; None when nothing is known of the allocation."""
        ...

    async def hold_room(self, order: PlaceholderOrder | None) -> None:
        """Have the placeholders of the order, and no others; those of None are none.

        Raises errors of ``libs/errors.py`` where that is not possible now.
        """
        ...

    async def capacity(self) -> PoolCapacity:
        """Nodes and devices of the pool, and who holds them now."""
        ...

    def changes(self) -> AsyncGenerator[str, None]:
        """Ids of allocations that may have changed, as notifications: at least one after the last change of each.

        What has changed is not said here but by ``observe``, so that many changes cost one observation, the newest.
        """
        ...
