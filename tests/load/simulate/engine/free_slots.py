"""Free slots of the nodes, grouped so that a node that fits is found without looking at all of them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence

from tests.load.simulate.cluster import SimulatedNode
from tests.load.simulate.traces.job import ANY_MODEL, Shape


class Oversold(AssertionError):
    """Slots were taken that a node does not have: a policy is wrong."""


class FreeSlots:
    """Nodes are known by their index. Among nodes alike, the first one is preferred, so that runs can be repeated."""

    def __init__(self, nodes: Sequence[SimulatedNode], free: Iterable[int] | None = None) -> None:
        self.by_node = [node.slots for node in nodes] if free is None else list(free)
        self._models = [node.model for node in nodes]
        self._all_models = sorted(set(self._models))
        largest = max((node.slots for node in nodes), default=0)
        self._nodes: dict[str, list[list[int]]] = {
            model: [[] for _ in range(largest + 1)] for model in self._all_models
        }
        for index, slots in enumerate(self.by_node):
            self._nodes[self._models[index]][slots].append(index)
        self.total = sum(self.by_node)

    def take(self, node: int, slots: int) -> None:
        """Raises Oversold."""
        if slots > self.by_node[node]:
            raise Oversold(f"{slots} slots were taken on node {node}, which has {self.by_node[node]} left")
        self.change(node, self.by_node[node] - slots)

    def give(self, node: int, slots: int) -> None:
        self.change(node, self.by_node[node] + slots)

    def change(self, node: int, slots: int) -> None:
        """Say how many slots are free on ``node``."""
        before = self.by_node[node]
        groups = self._nodes[self._models[node]]
        del groups[before][bisect_left(groups[before], node)]
        insort(groups[slots], node)
        self.by_node[node] = slots
        self.total += slots - before

    def has_room(self, shape: Shape) -> bool:
        """Whether ``fullest`` would find a node for every pod."""
        pods, slots, models = shape
        found = 0
        for model in self._wanted(models):
            for free, group in enumerate(self._nodes[model]):
                if free >= slots:
                    found += len(group) * (free // slots)
                    if found >= pods:
                        return True
        return False

    def fullest(self, shape: Shape) -> tuple[int, ...] | None:
        """A node for each pod, fullest nodes first, which keeps whole nodes free for large pods. Takes nothing."""
        pods, slots, models = shape
        if not self.has_room(shape):
            return None
        wanted = self._wanted(models)
        placed: list[int] = []
        for free in range(slots, len(self._nodes[wanted[0]])):
            for model in wanted:
                for node in self._nodes[model][free]:
                    placed += [node] * min(free // slots, pods - len(placed))
                    if len(placed) == pods:
                        return tuple(placed)
        raise AssertionError("has_room counts what is not there")

    def emptiest(self, slots: int, models: frozenset[str] = ANY_MODEL) -> int | None:
        """The node with the most free slots, or None where not even that has ``slots``."""
        wanted = self._wanted(models)
        for free in range(len(self._nodes[wanted[0]]) - 1 if wanted else 0, slots - 1, -1):
            for model in wanted:
                if self._nodes[model][free]:
                    return self._nodes[model][free][0]
        return None

    def _wanted(self, models: frozenset[str]) -> list[str]:
        return [model for model in self._all_models if model in models] if models else self._all_models
