"""Requirements of a pod: what a node must have and be so that the pod may run there."""

from __future__ import annotations

from msgspec import Struct

from services.scheduler.plan.nodes.amounts import Amounts
from services.scheduler.plan.nodes.selectors import NAME_FIELD, SelectorTerm
from services.scheduler.plan.nodes.taints import Toleration


class SlotResource(Struct, frozen=True, gc=False):
    """What a slot is to Kubernetes."""

    name: str
    """Of the resource: ``nvidia.com/gpu``, ``cpu``."""
    amount: int = 1
    """Of it in one slot, in the unit of ``amounts``."""


class PodRequirements(Struct, frozen=True, kw_only=True, gc=False, cache_hash=True):
    """Equal for all pods of an allocation, and for most allocations of a pool: results are kept by it."""

    node_selector: tuple[tuple[str, str], ...] = ()
    """Labels that a node must have, by key."""
    affinity: tuple[SelectorTerm, ...] | None = None
    """Alternatives of the required node affinity, of which one has to match; None where there is no such affinity."""
    tolerations: tuple[Toleration, ...] = ()
    requests: Amounts = ()
    """Of the pod as a whole, slots included."""
    slot: SlotResource | None = None
    """How ``requests`` has slots; None for a pod without."""

    @property
    def selected_by(self) -> frozenset[str]:
        """Keys of labels that decide, and ``metadata.name`` where the name does.

        Nodes of one shape are all the same to the pod when none of these is a label of the single node.
        """
        requirements = [each for term in self.affinity or () for each in (*term.labels, *term.fields)]
        return frozenset([*(key for key, _ in self.node_selector), *(each.key for each in requirements)])

    @property
    def names_nodes(self) -> bool:
        return NAME_FIELD in self.selected_by
