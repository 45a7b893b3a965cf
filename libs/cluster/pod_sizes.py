"""Sizes of the pods that a number of slots is divided into, where they need not be alike. Pure.

Every pod has a node, or a part of it, to itself: so many slots as are free there, and no more than a bound. What a node
has beyond a multiple of the bound is left to others, so that pods of different sizes do not compete for one node.
"""

from __future__ import annotations

from typing import Final

MOST_DIVIDED: Final = 1 << 17
"""Slots of one request that are divided: a plan looks at them one by one. More than any cluster has."""


def usable_slots(free: int, most: int) -> int:
    """How many of the free slots of a node pods of at most ``most`` slots have use for."""
    return free if free < most else free - free % most


def slots_for(used: int, most: int) -> int:
    """How many slots of a node have to be free that pods of at most ``most`` slots have use for ``used`` of them."""
    return used if used < most else -(-used // most) * most


def equal_sizes(slots: int, most: int) -> tuple[int, ...]:
    """Sizes of which pods make up ``slots``, from ``most`` down to half of it: smaller ones would be too many."""
    if most < 1:
        return ()
    return tuple(size for size in range(min(slots, most), (most - 1) // 2, -1) if slots % size == 0)
