"""Moves in a replay: the places that are kept for those that leave, until they have come back to the queue.

No more are made than may be made now. What may be moved an hour later is not counted on.
"""

from __future__ import annotations

import msgspec

from services.scheduler.plan.decisions import Move
from services.scheduler.plan.snapshot import HeldAllocation, PendingAllocation, Placement


class MovesOfReplay:
    def __init__(self, left: int) -> None:
        self.left = left
        self._places: dict[str, tuple[Placement, ...]] = {}
        self._kept: dict[str, HeldAllocation] = {}

    @property
    def kept(self) -> tuple[HeldAllocation, ...]:
        """The places of those that have not left yet."""
        return tuple(self._kept.values())

    def begin(self, move: Move, held: HeldAllocation) -> None:
        self.left -= 1
        pods = tuple((place.node, place.slots) for place in move.placements)
        self._places[move.allocation] = move.placements
        self._kept[move.allocation] = msgspec.structs.replace(held, pods=pods, leaving=False)

    def end(self, request: PendingAllocation) -> PendingAllocation:
        """``request``, which has left, with its places where it was moved."""
        places = self._places.pop(request.allocation, None)
        if places is None:
            return request
        del self._kept[request.allocation]
        return msgspec.structs.replace(request, nominated=places, moved=True)
