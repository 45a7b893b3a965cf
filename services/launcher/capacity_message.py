"""The capacity of a pool as one message, without what the bus does not take (pure)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Struct

from libs.events.capacity import PoolCapacity

Extent = Literal["whole", "without_shapes", "nothing"]


class CapacityMessage(Struct, frozen=True):
    extent: Extent
    """What of the capacity is in the payload."""
    size: int
    """Bytes of the whole capacity."""
    payload: bytes | None
    """None with ``nothing``."""


def capacity_message(capacity: PoolCapacity, *, fits: Callable[[bytes], bool]) -> CapacityMessage:
    """All of a capacity if that ``fits``; else what plans cannot do without: nodes, slots, and who holds them."""
    whole = msgspec.json.encode(capacity)
    if fits(whole):
        return CapacityMessage("whole", len(whole), whole)
    reduced = msgspec.json.encode(without_shapes(capacity))
    if fits(reduced):
        return CapacityMessage("without_shapes", len(whole), reduced)
    return CapacityMessage("nothing", len(whole), None)


def without_shapes(capacity: PoolCapacity) -> PoolCapacity:
    """As launchers report that see nothing of nodes but slots, so that nothing else is held against a node."""
    nodes = (msgspec.structs.replace(node, shape=None, labels={}, spare={}, foreign={}) for node in capacity.nodes)
    return msgspec.structs.replace(capacity, shapes=(), nodes=tuple(nodes))
