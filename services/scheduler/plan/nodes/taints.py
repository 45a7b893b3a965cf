"""Taints of nodes, and the tolerations of pods.

``PreferNoSchedule`` keeps no pod away, and is not looked at, but for that of nodes that an autoscaler would rather take
away: nothing new starts there where it finds another place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

_EXCLUDING: Final = ("NoSchedule", "NoExecute")


class NodeTaint(Struct, frozen=True, gc=False):
    key: str
    value: str = ""
    effect: str = "NoSchedule"

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


class Toleration(Struct, frozen=True, gc=False):
    key: str = ""
    """Empty is any key."""
    operator: str = "Equal"
    """``Equal`` or ``Exists``; nothing else tolerates a taint."""
    value: str = ""
    effect: str = ""
    """Empty is any effect."""


CORDON: Final = NodeTaint("node.kubernetes.io/unschedulable")
"""What ``kubectl cordon`` comes to: a pod that tolerates this taint may run on a cordoned node."""

DELETION_CANDIDATE: Final = "DeletionCandidateOfClusterAutoscaler"
"""Key of the taint of a node that the Cluster Autoscaler takes away unless it is used soon."""


def tolerates(tolerations: Iterable[Toleration], taint: NodeTaint) -> bool:
    return any(_tolerates(each, taint) for each in tolerations)


def untolerated(tolerations: tuple[Toleration, ...], taints: Iterable[NodeTaint]) -> list[NodeTaint]:
    """The taints that keep a pod with these tolerations away, in the order of the node."""
    return [each for each in taints if each.effect in _EXCLUDING and not tolerates(tolerations, each)]


def _tolerates(toleration: Toleration, taint: NodeTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator or "Equal":
        case "Exists":
            return True
        case "Equal":
            return toleration.value == taint.value
        case _:
            return False
