"""Requests for which nothing could be moved: as long as nothing has changed, plans need not search again.

What is lost with a move grows with time, and who is moved goes by that, so a search that was in vain may succeed later
although nothing has changed. Hence it is made anew after a while.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from services.scheduler.plan.room.demand import Demand
from services.scheduler.plan.snapshot import HeldAllocation, PendingAllocation, PoolSnapshot

SEARCHED_AGAIN_AFTER: Final = timedelta(minutes=1)
_KEPT: Final = 1000


class _Search(NamedTuple):
    at: datetime
    moves_left: int
    left: Mapping[str, int]
    movable: Set[str]


class SearchMemo:
    """Keeps searches of one pool that were in vain for its next plans."""

    def __init__(self) -> None:
        self._scene: tuple[Any, ...] = ()
        self._found: dict[tuple[Any, ...], _Search] = {}

    def see(self, pool: PoolSnapshot, requests: Mapping[str, PendingAllocation]) -> None:
        """A plan of ``pool`` begins to search; ``requests`` are those of what may be moved, by allocation."""
        scene = (
            pool.nodes,
            {one.allocation: _as_holder(one) for one in pool.held},
            {name: (one.pods, one.blocked_nodes, one.topology) for name, one in requests.items()},
        )
        if scene != self._scene:
            self._scene = scene
            self._found.clear()

    def is_in_vain(
        self, demand: Demand, left: Mapping[str, int], movable: Set[str], *, moves_left: int, now: datetime
    ) -> bool:
        """Whether nothing was found lately where the same was left on the nodes, and the same could be moved."""
        found = self._found.get(_key(demand))
        return (
            found is not None
            and now - found.at < SEARCHED_AGAIN_AFTER
            and found.moves_left == moves_left
            and found.movable == movable
            and found.left == left
        )

    def note(
        self, demand: Demand, left: Mapping[str, int], movable: Set[str], *, moves_left: int, now: datetime
    ) -> None:
        """Nothing was found."""
        if len(self._found) >= _KEPT:
            self._found.clear()
        self._found[_key(demand)] = _Search(now, moves_left, dict(left), frozenset(movable))


def _as_holder(one: HeldAllocation) -> tuple[Any, ...]:
    return one.pods, one.leaving, one.needs


def _key(demand: Demand) -> tuple[Any, ...]:
    return demand.units, demand.pods, frozenset(demand.excluded), demand.nodes, demand.requests, demand.topology
