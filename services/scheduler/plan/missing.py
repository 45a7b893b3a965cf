"""What a request lacks that a pool will never have as it is now, with its numbers."""

from __future__ import annotations

from typing import Final

from services.scheduler.plan.nodes.amounts import PODS, in_usual_order, in_words
from services.scheduler.plan.nodes.eligible import PASSING, EligibleNodes
from services.scheduler.plan.nodes.explaining import sentence
from services.scheduler.plan.nodes.unmet import UnmetCode
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.room.demand import Demand
from services.scheduler.plan.snapshot import PendingAllocation, PoolSnapshot
from services.scheduler.plan.topology.levels import in_words as level_in_words

_OF_SELECTION: Final = (UnmetCode.NODE_SELECTOR, UnmetCode.NODE_AFFINITY, UnmetCode.TAINT)


class Missing:
    """``eligible`` is None where only slots of the nodes are known."""

    def __init__(self, pool: PoolSnapshot, eligible: EligibleNodes | None) -> None:
        self._pool = pool
        self._eligible = eligible

    def for_ever(self, request: PendingAllocation, room: int) -> tuple[WaitReason, str]:
        """Why it would not start if every node were in service and nothing of the pool ran, and what is missing.

        room  pods of it that there is room for then
        """
        needs = request.needs
        if needs is not None and self._eligible is not None:
            if found := self._eligible.excluding(needs):
                # Nodes that are not selected are many, and nobody wants them.
                condition = next((each for each in found if each.code not in _OF_SELECTION), found[0])
                is_size = condition.code is UnmetCode.SLOTS
                return WaitReason.TOO_LARGE if is_size else WaitReason.NO_SUCH_NODE, sentence(condition, needs)
            bare = self._eligible.pods_when_bare(needs)
            if bare is None or bare >= len(request.pods):
                return WaitReason.FOREIGN_PODS, ""
            room = room if request.most_per_pod else bare
        return WaitReason.TOO_LARGE, self._too_large(request, room)

    def in_one_domain(self, request: PendingAllocation) -> str:
        """What one that requires a domain waits for."""
        assert request.topology is not None
        pods = f"{len(request.pods)} pods of {_slots(request.pods[0])} each"
        if request.most_per_pod:
            pods = _divided(request)
        return f"needs {pods} in one {level_in_words(request.topology.level)}"

    def in_one_domain_now(self, request: PendingAllocation, most: int) -> str:
        """The same, with the number of its pods for which the domain with the most room has some."""
        assert request.topology is not None
        word = level_in_words(request.topology.level)
        return f"{self.in_one_domain(request)}; the {word} with the most room has room for {most or 'none'}"

    def in_one_domain_for_ever(self, request: PendingAllocation, most: int) -> str:
        """The same of the largest domain, if every node were in service and nothing of the pool ran."""
        assert request.topology is not None
        level, word = request.topology.level, level_in_words(request.topology.level)
        if level not in self._pool.levels:
            known = ", ".join(self._pool.levels)
            said = f"the resource pool has no level {level}{f', but {known}' if known else ''}"
        elif not any(node.domains and node.domains[self._pool.levels.index(level)] for node in self._pool.nodes or ()):
            said = f"no node has the label {level}"
        else:
            said = f"the largest {word} has room for {most or 'none'}"
        return f"{self.in_one_domain(request)}; {said}"

    def out_of_service(self, request: PendingAllocation) -> str:
        """What keeps nodes from it that would do."""
        needs = request.needs
        if needs is None or self._eligible is None:
            return ""
        found = (each for each in self._eligible.excluding(needs) if each.code in PASSING)
        condition = next(found, None)
        return "" if condition is None else sentence(condition, needs)

    def beside_slots(self, demand: Demand) -> str:
        """What it asks for beside slots."""
        asked = sorted(demand.requests, key=lambda each: in_usual_order(each[0]))
        return f"needs {', '.join(in_words(*each) for each in asked if each[0] != PODS)}" if asked else ""

    def _too_large(self, request: PendingAllocation, room: int) -> str:
        slots, pods = request.pods[0], len(request.pods)
        if not slots:
            return ""
        if not self._pool.nodes:
            return f"needs {_slots(request.slots)}; there is no node"
        selector = request.needs.node_selector if request.needs is not None else ()
        such = f" with {', '.join(f'{key}={value}' for key, value in selector)}" if selector else ""
        if request.most_per_pod:
            return f"needs {_divided(request)} on nodes{such}, which have room for {room}"
        if pods == 1:
            largest = max(node.slots for node in self._pool.nodes)
            return f"needs {_slots(slots)} on one node{such}; the largest node has {largest}"
        return f"needs {pods} pods of {_slots(slots)} each on nodes{such}, which have room for {room}"


def _divided(request: PendingAllocation) -> str:
    return f"{_slots(request.slots)} in pods of at most {request.most_per_pod}"


def _slots(count: int) -> str:
    return "1 slot" if count == 1 else f"{count} slots"
