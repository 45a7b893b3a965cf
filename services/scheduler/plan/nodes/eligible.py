"""Nodes that pods may use, by what the pods require: found once for each kind of pod, and kept while the nodes stay as
they are.

What running pods leave of a node changes from plan to plan and is not looked at here: room/stock.py counts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from services.scheduler.plan.nodes.amounts import PODS, Amounts, added, amounts
from services.scheduler.plan.nodes.explaining import excluding_kinds
from services.scheduler.plan.nodes.requirements import PodRequirements
from services.scheduler.plan.nodes.shapes import NodeShape, ShapedNode
from services.scheduler.plan.nodes.unmet import Unmet, UnmetCode, conditions_unmet

Names: TypeAlias = frozenset[str]
Labels: TypeAlias = tuple[tuple[str, str], ...]

_KEPT: Final = 10_000
"""Kinds of pods; more are found anew."""
PASSING: Final = frozenset({UnmetCode.NOT_READY, UnmetCode.BAD_CONDITION, UnmetCode.CORDONED})
"""Conditions that a node meets again when it is back in service."""
_OF_SIZE: Final = frozenset({UnmetCode.SLOTS, UnmetCode.RESOURCE, UnmetCode.PODS, UnmetCode.DEVICES_BY_CLAIM})


class Eligible(Struct, frozen=True):
    now: Names
    """Nodes where such a pod may run, were they empty."""
    in_service: Names
    """The same if every node were in service: ready, and not cordoned."""


class EligibleNodes:
    """Of one set of nodes."""

    def __init__(self, nodes: Iterable[ShapedNode]) -> None:
        self._nodes = tuple(nodes)
        self._found: dict[PodRequirements, Eligible] = {}
        self._bare: dict[PodRequirements, int | None] = {}
        self._excluding: dict[PodRequirements, tuple[Unmet, ...]] = {}
        # Equal sets are one object: there are few, and they are compared often.
        self._sets: dict[Names, Names] = {}
        self._groups: tuple[frozenset[Names], Mapping[str, int]] = (frozenset(), {})
        self.everything = self._set(node.name for node in self._nodes)

    def of(self, needs: PodRequirements) -> Eligible:
        found = self._found.get(needs)
        if found is None:
            if len(self._found) >= _KEPT:
                self._found.clear()
                self._bare.clear()
                self._excluding.clear()
            found = self._found[needs] = self._find(needs)
        return found

    def groups(self, sets: Iterable[Names]) -> Mapping[str, int]:
        """A number for each node; nodes with the same number are in the same of the ``sets``. Empty where there is one
        number only: then every set is empty or has all nodes."""
        wanted = frozenset(each for each in sets if each and each is not self.everything)
        if wanted != self._groups[0]:
            self._groups = (wanted, _partition(self.everything, wanted))
        return self._groups[1]

    def pods_when_bare(self, needs: PodRequirements) -> int | None:
        """How many such pods all nodes have room for together if nothing ran anywhere, not even pods of others, and
        every node were in service; None where a node is not counted."""
        if needs not in self._bare:
            self._bare[needs] = self._count_bare(needs)
        return self._bare[needs]

    def excluding(self, needs: PodRequirements) -> tuple[Unmet, ...]:
        """What excludes the nodes, as ``excluding_kinds`` has it. () where one would do."""
        if needs not in self._excluding:
            kinds = self._kinds(needs)
            self._excluding[needs] = excluding_kinds(needs, ((node, count) for node, count in kinds.values()))
        return self._excluding[needs]

    def _count_bare(self, needs: PodRequirements) -> int | None:
        usable, total = self.of(needs).in_service, 0
        for node in self._nodes:
            if node.name not in usable:
                continue
            if node.shape.allocatable is None:
                return None
            has = dict(added(node.shape.allocatable, node.spare))
            wanted = (*needs.requests, (PODS, 1))
            total += min(has.get(resource, 0) // amount for resource, amount in wanted if amount)
        return total

    def _kinds(self, needs: PodRequirements) -> dict[tuple[object, ...], tuple[ShapedNode, int]]:
        """Nodes that are alike to these pods, but for how much each has beyond its shape: as one that has the most."""
        selected_by, by_name = needs.selected_by, needs.names_nodes
        found: dict[tuple[object, ...], tuple[ShapedNode, int]] = {}
        for node in self._nodes:
            key = (node.shape, tuple(label for label in node.labels if label[0] in selected_by), by_name and node.name)
            before = found.get(key)
            if before is None:
                found[key] = (node, 1)
            else:
                found[key] = (_larger(before[0], node), before[1] + 1)
        return found

    def _find(self, needs: PodRequirements) -> Eligible:
        codes: dict[tuple[NodeShape, Labels, str], frozenset[UnmetCode]] = {}
        selected_by, by_name = needs.selected_by, needs.names_nodes
        now, in_service = [], []
        for node in self._nodes:
            labels = tuple(label for label in node.labels if label[0] in selected_by)
            name = node.name if by_name else ""
            key = (node.shape, labels, name)
            found = codes.get(key)
            if found is None:
                found = codes[key] = _codes(needs, *key)
            if found & _OF_SIZE and node.spare:
                # What this one has beyond its shape may be just what is missing.
                found = _codes(needs, *key, node.empty)
            if not found:
                now.append(node.name)
            if found <= PASSING:
                in_service.append(node.name)
        return Eligible(self._set(now), self._set(in_service))

    def _set(self, names: Iterable[str]) -> Names:
        found = frozenset(names)
        return self._sets.setdefault(found, found)


class EligibilityMemo:
    """Keeps what was found of the nodes of one pool for the next plan. Results do not depend on it."""

    def __init__(self) -> None:
        self._seen: list[ShapedNode] = []
        self._lasting: list[tuple[str, NodeShape, Labels, Amounts]] = []
        self._eligible = EligibleNodes(())

    def of(self, nodes: Sequence[ShapedNode]) -> EligibleNodes:
        seen = list(nodes)
        if seen != self._seen:
            self._seen = seen
            lasting = [(node.name, node.shape, node.labels, node.spare) for node in nodes]
            if lasting != self._lasting:
                self._lasting = lasting
                self._eligible = EligibleNodes(nodes)
        return self._eligible


def _codes(
    needs: PodRequirements, shape: NodeShape, labels: Labels, name: str, taken: Amounts = ()
) -> frozenset[UnmetCode]:
    return frozenset(each.code for each in conditions_unmet(needs, shape, name=name, labels=labels, taken=taken))


def _larger(one: ShapedNode, other: ShapedNode) -> ShapedNode:
    if one.spare == other.spare:
        return one
    most = dict(one.spare)
    for resource, amount in other.spare:
        most[resource] = max(most.get(resource, 0), amount)
    return msgspec.structs.replace(one, spare=amounts(most))


def _partition(names: Names, sets: Iterable[Names]) -> Mapping[str, int]:
    groups: dict[str, int] = {}
    for each in sets:
        numbers: dict[tuple[int, bool], int] = {}
        groups = {name: numbers.setdefault((groups.get(name, 0), name in each), len(numbers)) for name in names}
    return groups
