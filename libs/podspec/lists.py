"""The order of a merged list.

Items of the patch keep the order of the patch, items only the base has keep the order of the base, and where the base
knows two items from either side, its order decides which comes first. New items come before what remains of the base.

Source: spec/kubernetes.md 6.2 (order of a merged list).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def interleave(base_only: Sequence[Any], patched: Sequence[Any], base_order: Sequence[Any]) -> list[Any]:
    """Merge two lists of identities, each of which keeps its own order.

    base_only   what the patch does not mention
    patched     what the patch mentions; shares no identity with base_only
    base_order  all identities of the base, in its order
    """
    merged: list[Any] = []
    waiting = list(base_only)
    for identity in patched:
        if identity in base_order:
            place = base_order.index(identity)
            while waiting and base_order.index(waiting[0]) < place:
                merged.append(waiting.pop(0))
        merged.append(identity)
    return merged + waiting


def without_repeats(values: Sequence[Any]) -> list[Any]:
    """Each value once, where it stood first. Compares by equality, since values may not be hashable."""
    seen: list[Any] = []
    for value in values:
        if value not in seen:
            seen.append(value)
    return seen
