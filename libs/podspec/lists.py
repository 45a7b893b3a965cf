"""The order of a merged list.

Items of the patch keep the order of the patch, items only the base has keep the order of the base, and where the base
knows two items from either side, its order decides which comes first. New items come before what remains of the base.

Source: docs/reference/kubernetes.md 6.2 (order of a merged list).
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from typing import Any, TypeAlias

Identity: TypeAlias = str
"""What makes two items of a list the same one."""


def identity_of(value: Any) -> Identity:
    """Equal values have equal identities, whatever they are made of."""
    return json.dumps(value, sort_keys=True)


def interleave(merged: Iterable[Identity], patched: Iterable[Identity], base: Iterable[Identity]) -> list[Identity]:
    """The identities of ``merged``, each once, in the order that patch and base agree on.

    patched  what the patch puts in order; those that are not in ``merged`` do not count
    base     in its order; items neither side puts in order come last
    """
    present = dict.fromkeys(merged)
    mentioned = {identity: None for identity in patched if identity in present}
    places = {identity: place for place, identity in enumerate(dict.fromkeys(base))}
    waiting = deque(identity for identity in present if identity not in mentioned)
    result: list[Identity] = []
    for identity in mentioned:
        while waiting and identity in places and places.get(waiting[0], len(places)) < places[identity]:
            result.append(waiting.popleft())
        result.append(identity)
    return [*result, *waiting]
