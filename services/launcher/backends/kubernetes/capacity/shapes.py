"""Finds the shapes of nodes: what pods may ask for, said once for all nodes that have it in common.

Nodes that are alike differ in a few labels, and by some KiB in memory and storage. A label with many values is said of
each node, as are labels that make many shapes together, and what is left when memory and storage are rounded down.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from libs.events.node_shapes import ReportedShape
from services.launcher.backends.kubernetes.capacity.label_places import LabelValues, labels_to_move
from services.launcher.backends.kubernetes.capacity.node_parts import NodePart, ShapeRules, node_part
from services.launcher.backends.kubernetes.client.objects import Node

_NO_LABELS: Final[dict[str, str]] = {}


class OwnPart(Struct, frozen=True):
    """What is said of one node beside its shape."""

    shape: int
    labels: dict[str, str]
    spare: dict[str, int]


class NodeShapes(Struct, frozen=True):
    shapes: tuple[ReportedShape, ...]
    by_node: Mapping[str, OwnPart]


class _Common(Struct, frozen=True, eq=False, weakref=True):
    """What nodes have in common that differ in labels with many values only; one object for all of them."""

    labels: dict[str, str]
    rest: ReportedShape
    rest_key: object


class _Placed(Struct, frozen=True):
    """A node, by what it has in common with others."""

    common: _Common
    labels: dict[str, str]
    part: NodePart


class ShapeFinder:
    """Keeps what each node contributes, so that the change of one costs little among thousands."""

    def __init__(self, rules: ShapeRules) -> None:
        self._rules = rules
        self._parts: dict[str, NodePart] = {}
        self._values = LabelValues()
        self._own_keys: frozenset[str] = frozenset()
        self._placed: dict[str, _Placed] = {}
        """With ``_own_keys`` as they are."""
        self._common: WeakValueDictionary[object, _Common] = WeakValueDictionary()
        """As long as a node has it."""

    def forget(self, name: str) -> None:
        """A node is another, or gone: it is looked at again when it is asked for."""
        part = self._parts.pop(name, None)
        if part is not None:
            self._values.remove(part.labels)
            self._placed.pop(name, None)

    def find(self, nodes: Iterable[Node], *, with_claims: Collection[str] = ()) -> NodeShapes:
        """The shapes of nodes, the same whatever their order, and whatever was asked for before.

        nodes        those that were asked for before are as they were, unless they were forgotten
        with_claims  names of nodes whose devices Dynamic Resource Allocation offers
        """
        names = self._learn(nodes)
        kinds: dict[tuple[_Common, bool], None] = {}
        kind_of: dict[str, tuple[_Common, bool]] = {}
        for name in names:
            placed = self._placed.get(name) or self._place(name)
            kind_of[name] = kind = placed.common, name in with_claims and not placed.part.has_slots
            kinds[kind] = None
        moved = labels_to_move([(common.labels, (common.rest_key, claims)) for common, claims in kinds])
        shapes, number_of = _shapes(kinds, moved)
        by_node = {}
        for name, kind in kind_of.items():
            own = self._placed[name]
            labels = own.labels | _only(kind[0].labels, moved) if moved else own.labels
            by_node[name] = OwnPart(number_of[kind], labels, own.part.spare)
        return NodeShapes(shapes, by_node)

    def _learn(self, nodes: Iterable[Node]) -> list[str]:
        """Know these nodes and no others; their names, sorted."""
        names = []
        for node in nodes:
            name = node.metadata.name
            names.append(name)
            if name not in self._parts:
                self._parts[name] = part = node_part(node, self._rules)
                self._values.add(part.labels)
        for name in self._parts.keys() - set(names):
            self.forget(name)
        own_keys = self._values.with_many()
        if own_keys != self._own_keys:
            self._own_keys = own_keys
            self._placed.clear()
        return sorted(names)

    def _place(self, name: str) -> _Placed:
        part, own_keys = self._parts[name], self._own_keys
        labels = {key: value for key, value in part.labels.items() if key not in own_keys}
        key = tuple(labels.items()), part.rest_key
        common = self._common.get(key)
        if common is None:
            self._common[key] = common = _Common(labels, part.rest, part.rest_key)
        self._placed[name] = placed = _Placed(common, _only(part.labels, own_keys), part)
        return placed


def _shapes(
    kinds: Iterable[tuple[_Common, bool]], moved: frozenset[str]
) -> tuple[tuple[ReportedShape, ...], dict[tuple[_Common, bool], int]]:
    """The shapes of kinds of nodes when some labels are no part of them, and the number of each kind's."""
    shapes: list[ReportedShape] = []
    numbers: dict[object, int] = {}
    number_of: dict[tuple[_Common, bool], int] = {}
    for common, claims_only in kinds:
        labels = {key: value for key, value in common.labels.items() if key not in moved}
        number = numbers.setdefault((tuple(labels.items()), common.rest_key, claims_only), len(shapes))
        if number == len(shapes):
            shapes.append(msgspec.structs.replace(common.rest, labels=labels, claims_only=claims_only))
        number_of[common, claims_only] = number
    return tuple(shapes), number_of


def _only(labels: Mapping[str, str], keys: frozenset[str]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if key in keys} if keys else _NO_LABELS
