"""What a request that waits for slots lacks at the moment, with its numbers.

The numbers change whenever something starts or ends, and each change is written into a row. So only those have them
that are the first of their kind, and of these the first of the queue: whoever is behind them hears why in words.
"""

from __future__ import annotations

from typing import Final

from services.scheduler.plan.room.occupancy import Occupancy
from services.scheduler.plan.snapshot import PendingAllocation

_MOST: Final = 20
"""Requests of one plan that are told numbers; counting costs a look at the kinds of nodes."""


class FreeRoom:
    def __init__(self, occupancy: Occupancy) -> None:
        self._occupancy = occupancy
        self._left = _MOST

    def missing_for(self, request: PendingAllocation) -> str:
        """What is free of what ``request`` needs: ``needs 2 nodes with 8 free slots; 1 has; 14 of 64 slots are free``.

        "" for what has no slots, and when enough others were told numbers.
        """
        if not request.slots or not self._left:
            return ""
        self._left -= 1
        room = self._occupancy.free_room(request)
        where = " on the nodes that it may use" if room.is_selected else ""
        free = f"{room.free} of {_slots(room.total)} {'is' if room.free == 1 else 'are'} free{where}"
        return f"{_needed(request, room.pods, room.largest)}; {free}"


def _needed(request: PendingAllocation, has: int, largest: int) -> str:
    each, pods = request.pods[0], len(request.pods)
    if request.most_per_pod:
        return f"needs {_free_slots(pods)} in pods of at most {request.most_per_pod}; there is room for {has}"
    if pods == 1:
        return f"needs {_free_slots(each)}{' on one node' if each > 1 else ''}"
    if 2 * each > largest:
        return f"needs {pods} nodes with {_free_slots(each)}; {has} {'has' if has == 1 else 'have'}"
    return f"needs {pods} times {_free_slots(each)} on one node; there is room for {has}"


def _slots(count: int) -> str:
    return "1 slot" if count == 1 else f"{count} slots"


def _free_slots(count: int) -> str:
    return "1 free slot" if count == 1 else f"{count} free slots"
