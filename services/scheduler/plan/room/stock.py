"""What is left on each node of everything but slots: cores, memory, storage, pods, other extended resources.

Both lanes of a queue draw on it. Nodes of which nobody counts anything have enough of everything.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from services.scheduler.plan.nodes.amounts import Amounts
from services.scheduler.plan.nodes.shapes import ShapedNode
from services.scheduler.plan.room.demand import beside_slots
from services.scheduler.plan.room.ledger import Ledger
from services.scheduler.plan.room.room import ENOUGH
from services.scheduler.plan.snapshot import NEVER, HeldAllocation, NodeSlots

_PAST: Final = datetime.min.replace(tzinfo=UTC)


class StockView:
    """What is left, with what some ledgers add, and without what others have."""

    def __init__(self, stock: Stock, *, plus: tuple[Ledger, ...] = (), minus: tuple[Ledger, ...] = ()) -> None:
        self._stock = stock
        self._plus = plus
        self._minus = minus

    def pods(self, node: str, requests: Amounts, given: Mapping[str, int] | None = None) -> int:
        """How many pods of ``requests`` find enough on ``node``, when so much more is ``given`` there."""
        free = self._stock.free(node)
        if free is None:
            return ENOUGH
        plus = [found for ledger in self._plus if ledger and (found := ledger.of(node))]
        minus = [found for ledger in self._minus if ledger and (found := ledger.of(node))]
        if given:
            plus.append(given)
        most = ENOUGH
        for resource, amount in requests:
            left = free.get(resource, 0)
            for added in plus:
                left += added.get(resource, 0)
            for taken in minus:
                left -= taken.get(resource, 0)
            if left < amount:
                return 0
            most = min(most, left // amount)
        return most


class Stock:
    def __init__(self, nodes: Iterable[NodeSlots], held: Iterable[HeldAllocation]) -> None:
        self._nodes: dict[str, ShapedNode] = {
            node.name: node.shaped
            for node in nodes
            if node.shaped is not None and node.shaped.shape.allocatable is not None
        }
        self._free: dict[str, dict[str, int]] = {}
        self._empty: dict[str, dict[str, int]] = {}
        self._taken: defaultdict[str, list[Amounts]] = defaultdict(list)
        self._holders: defaultdict[str, list[tuple[datetime, Amounts]]] = defaultdict(list)
        """Until when who holds what."""
        self._leaving = Ledger()
        self._reserved = Ledger()
        self._kept = Ledger()
        self._promised = Ledger()
        self._owed = Ledger()
        self.left = StockView(self)
        """What nobody holds."""
        self.open = StockView(self, minus=(self._kept,))
        """What of it is kept for nobody."""
        self.coming = StockView(self, plus=(self._leaving,))
        """What nobody holds once those have left that are leaving."""
        self.later = StockView(self, plus=(self._leaving,), minus=(self._reserved, self._promised))
        """What of that is kept for nobody."""
        self.later_reserved = StockView(self, plus=(self._leaving,), minus=(self._promised,))
        """The same, with what is kept for those who have reservations."""
        for one in held if self._nodes else ():
            self._hold(one)

    def __bool__(self) -> bool:
        """Whether anything is counted."""
        return bool(self._nodes)

    def free(self, node: str) -> dict[str, int] | None:
        """What nobody holds; None where nobody counts it. A node is added up when somebody asks for it."""
        found = self._free.get(node)
        if found is None and node in self._nodes:
            found = self._free[node] = dict(self._when_empty(node))
            for requests in self._taken[node]:
                _subtract(found, requests)
        return found

    def pods_when_empty(self, node: str, requests: Amounts, _given: Mapping[str, int] | None = None) -> int:
        """How many pods would find enough if nothing of the pool ran there."""
        if node not in self._nodes:
            return ENOUGH
        return _pods_in(self._when_empty(node), requests)

    def pods_unreserved(self, node: str, requests: Amounts) -> int:
        """The same beside those for whom room is kept."""
        if node not in self._nodes:
            return ENOUGH
        left, reserved = self._when_empty(node), self._reserved.of(node)
        if reserved:
            left = dict(left)
            _subtract(left, reserved.items())
        return _pods_in(left, requests)

    def take(self, node: str, requests: Amounts, ends_at: datetime) -> None:
        """A pod starts there."""
        free = self.free(node)
        if free is not None:
            _subtract(free, requests)
            self._holders[node].append((ends_at, requests))

    def leave(self, node: str, requests: Amounts) -> None:
        """A pod is asked to leave."""
        if node in self._nodes:
            self._leaving.add(node, requests)

    def nominate(self, node: str, requests: Amounts) -> None:
        """Keep room for a pod, first in what comes free."""
        free = self.free(node)
        if free is None:
            return
        leaving = self._leaving.of(node)
        owed = tuple((resource, min(max(leaving.get(resource, 0), 0), amount)) for resource, amount in requests)
        self._leaving.add(node, owed, -1)
        self._owed.add(node, owed)
        _subtract(free, requests)
        _subtract(free, owed, -1)
        self._holders[node].append((NEVER, requests))

    def promise(self, node: str, requests: Amounts) -> None:
        """Nobody else is to count on room for this pod, which comes free."""
        if node in self._nodes:
            self._promised.add(node, requests)

    def keep(self, node: str, requests: Amounts, count: int, until: datetime) -> None:
        """Keep room for pods that start at ``until``. What comes free by then need not be kept now."""
        if self.free(node) is None:
            return
        coming = dict.fromkeys((resource for resource, _ in requests), 0)
        for ends_at, freed in self._holders[node] if until != NEVER else ():
            for resource, amount in freed if ends_at <= until else ():
                coming[resource] = coming.get(resource, 0) + amount
        reserved, kept, owed = self._reserved.of(node), self._kept.of(node), self._owed.of(node)
        for resource, amount in requests:
            # Those before it have the rest of theirs from what comes free, too.
            borrowed = reserved.get(resource, 0) - kept.get(resource, 0) + owed.get(resource, 0)
            left_over = max(coming[resource] - borrowed, 0)
            self._kept.add(node, ((resource, max(amount * count - left_over, 0)),))
        self._reserved.add(node, requests, count)

    def free_at(self, node: str, requests: Amounts, count: int, now: datetime) -> datetime:
        """When so many pods find enough there beside those for whom room is kept; NEVER if nobody knows."""
        unreserved = self._unreserved(node)
        if unreserved is None:
            return now
        lacking = {resource: amount * count - unreserved.get(resource, 0) for resource, amount in requests}
        at = now
        leaving = iter(sorted(self._holders[node]))
        while any(amount > 0 for amount in lacking.values()):
            ends_at, freed = next(leaving, (NEVER, ()))
            if ends_at == NEVER:
                return NEVER
            at = max(at, ends_at)
            for resource, amount in freed:
                if resource in lacking:
                    lacking[resource] -= amount
        return at

    def next_lane(self) -> None:
        """What is kept for requests of one lane is held as far as the next one is concerned."""
        for node, requests in self._kept.take_all():
            if (free := self.free(node)) is not None:
                _subtract(free, requests)
        for node, requests in self._promised.take_all():
            self.nominate(node, requests)
        self._reserved.clear()

    def _unreserved(self, node: str) -> Mapping[str, int] | None:
        free = self.free(node)
        if free is None or not (self._reserved or self._owed):
            return free
        left = dict(free)
        _subtract(left, self._reserved.of(node).items())
        _subtract(left, self._owed.of(node).items())
        return left

    def _when_empty(self, node: str) -> dict[str, int]:
        found = self._empty.get(node)
        if found is None:
            shaped = self._nodes[node]
            found = self._empty[node] = dict(shaped.shape.allocatable or ())
            _subtract(found, shaped.spare, -1)
            _subtract(found, shaped.foreign)
        return found

    def _hold(self, one: HeldAllocation) -> None:
        requests = beside_slots(one.needs)
        for node, _ in one.pods if requests else ():
            if node not in self._nodes:
                continue
            self._taken[node].append(requests)
            self._holders[node].append((_PAST if one.leaving else one.ends_at or NEVER, requests))
            if one.leaving:
                self._leaving.add(node, requests)


def _subtract(free: dict[str, int], requests: Iterable[tuple[str, int]], times: int = 1) -> None:
    for resource, amount in requests:
        free[resource] = free.get(resource, 0) - amount * times


def _pods_in(left: Mapping[str, int], requests: Amounts) -> int:
    most = ENOUGH
    for resource, amount in requests:
        found = left.get(resource, 0)
        if found < amount:
            return 0
        most = min(most, found // amount)
    return most
