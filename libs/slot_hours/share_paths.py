"""Paths of the shares of a pool, and what each of them may have. Pure.

A path such as ``group 7/user 2`` names a share within another one, by kinds and ids.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from libs.cluster.config import ShareKind
from libs.slot_hours.decayed_use import Holder

_ROUNDS: Final = 60
"""Halvings, after which a level is as exact as a float."""


def part(kind: ShareKind, owner: int | None, workspace: int | None, groups: Mapping[int, int]) -> str:
    """The share of ``kind`` that something of ``owner`` in ``workspace`` counts to; ``groups`` are those of users."""
    if kind == "workspace":
        return f"workspace {workspace}"
    if kind == "group" and owner is not None and owner in groups:
        return f"group {groups[owner]}"
    return f"user {owner}"  # who is in no group has a share beside those of the groups


def used_by_share(
    used: Mapping[Holder, float], share_by: Sequence[ShareKind], groups: Mapping[int, int]
) -> dict[str, float]:
    """What was used by each share, by its path, when owners have ``used`` so much in workspaces."""
    found: dict[str, float] = {}
    for (owner, workspace), slots in sorted(used.items()):
        path = ""
        for kind in share_by:
            here = part(kind, owner, workspace, groups)
            path = f"{path}/{here}" if path else here
            found[path] = found.get(path, 0.0) + slots
    return found


def effective_slots(past: Mapping[str, float], weights: Mapping[str, float], slots: float) -> dict[str, float]:
    """Slots that each share of ``past`` would get of a pool if all of them wanted everything: as many as raise what it
    holds and has used, together and by its weight, to the level of those beside it.

    past     what was used, by path
    weights  by the last part of paths, where it is not 1
    """
    beside: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(past):
        beside[path.rpartition("/")[0]].append(path)
    found = {"": slots}
    for parent in sorted(beside, key=lambda path: path.count("/") if path else -1):
        paths = beside[parent]
        weighed = [(past[path], weights.get(path.rpartition("/")[2], 1.0)) for path in paths]
        level = _level(weighed, found[parent])
        found |= {path: max(weight * level - used, 0.0) for path, (used, weight) in zip(paths, weighed, strict=True)}
    del found[""]
    return found


def _level(weighed: Iterable[tuple[float, float]], slots: float) -> float:
    """Use per weight up to which so many slots raise all that are below."""
    weighed = list(weighed)
    low, high = 0.0, max((used + slots) / weight for used, weight in weighed)
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        if sum(max(weight * middle - used, 0.0) for used, weight in weighed) > slots:
            high = middle
        else:
            low = middle
    return low
