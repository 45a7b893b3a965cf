"""Which reports of a capacity are news to plans.

A launcher reports anew whenever a pod comes or goes, twice a second in a busy pool. Which slots the pool's own tasks
hold plans know from their rows, and sooner: a plan for the sake of such a report would find nothing, and keep the next
one, which gives a slot that comes free to somebody, waiting for its pause.
"""

from __future__ import annotations

import msgspec

from libs.events.capacity import NodeCapacity, PoolCapacity


class CapacityNews:
    def __init__(self) -> None:
        self._last: dict[str, object] = {}
        """By pool: what plans depend on."""

    def is_news(self, pool: str, capacity: PoolCapacity | None) -> bool:
        """Whether plans of ``pool`` may come to something else than by the report before; ``capacity`` is None when
        there is none any more."""
        now = None if capacity is None else _planned_from(capacity)
        before = self._last.get(pool)
        self._last[pool] = now
        return now is None or now != before


def _planned_from(capacity: PoolCapacity) -> object:
    nodes = tuple((len(node.devices), _without_own(node)) for node in capacity.nodes)
    return nodes, msgspec.structs.replace(capacity, nodes=(), seen_at="", revision=0)


def _without_own(node: NodeCapacity) -> NodeCapacity:
    """Without the slots that are free, or that the pool's own tasks hold."""
    held = tuple(
        device
        for device in node.devices
        if device.foreign or (device.container is not None and device.allocation is None)
    )
    return msgspec.structs.replace(node, devices=held, aux_containers=())
