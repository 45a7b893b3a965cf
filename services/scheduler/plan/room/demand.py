"""Demands: what a request asks of the nodes, apart from who asks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final

from libs.cluster.pod_sizes import equal_sizes, slots_for, usable_slots
from services.scheduler.plan.nodes.amounts import CPU, PODS, Amounts, amounts
from services.scheduler.plan.nodes.eligible import EligibleNodes, Names
from services.scheduler.plan.nodes.requirements import PodRequirements
from services.scheduler.plan.snapshot import PendingAllocation
from services.scheduler.plan.topology.domains import Domains
from services.scheduler.plan.topology.levels import LevelChoice

_KINDS: Final = 10_000
_NOWHERE: Final[frozenset[str]] = frozenset()


class Demand:
    """Equal requests of a plan have one, so that what is found of it once need not be looked for again."""

    __slots__ = ("equal", "excluded", "groups", "most", "nodes", "pods", "requests", "topology", "units")

    def __init__(
        self,
        *,
        units: int,
        pods: int,
        excluded: Collection[str] = _NOWHERE,
        nodes: Names | None = None,
        groups: frozenset[int] | None = None,
        requests: Amounts = (),
        topology: LevelChoice | None = None,
        most: int = 0,
    ) -> None:
        """
        units     of each pod: slots, or a place for an auxiliary one
        excluded  nodes that it must not run on
        nodes     those that it may run on; None is all
        groups    of the same nodes, as ``EligibleNodes.groups`` numbers them; None is all
        requests  of each pod, beside its units
        topology  how near to each other the pods are to be; None is anywhere
        most      not 0: ``pods`` places of one unit each, to be divided into pods of so many units at most
        """
        self.units = units
        self.pods = pods
        self.excluded = excluded
        self.nodes = nodes
        self.groups = groups
        self.requests = requests
        self.topology = topology
        self.most = most
        self.equal = tuple(
            Demand(units=size, pods=pods // size, excluded=excluded, nodes=nodes, groups=groups, requests=requests)
            for size in equal_sizes(pods, most)
        )
        """What would do, too, and rather: pods of one size, the largest first."""

    @property
    def stays_in_domain(self) -> bool:
        """Whether it has room only where one domain has room for all of its pods."""
        return self.topology is not None and self.topology.required

    @property
    def anywhere(self) -> Demand:
        """The same of pods that may be anywhere."""
        return self if self.topology is None else self.for_pods(self.pods)

    def for_pods(self, pods: int) -> Demand:
        """The same of so many pods that may be anywhere."""
        return Demand(
            units=self.units,
            pods=pods,
            excluded=self.excluded,
            nodes=self.nodes,
            groups=self.groups,
            requests=self.requests,
            most=self.most,
        )

    def on(self, nodes: Iterable[str]) -> Demand:
        """The same on some of the nodes, anywhere there; only ``allows`` knows which."""
        found = self.for_pods(self.pods)
        found.nodes = frozenset(node for node in nodes if self.allows(node))
        return found

    def avoiding(self, nodes: frozenset[str]) -> Demand:
        """The same on other nodes than ``nodes``."""
        found = self.for_pods(self.pods)
        found.excluded, found.topology = frozenset(self.excluded) | nodes, self.topology
        found.equal = tuple(one.avoiding(nodes) for one in self.equal)
        return found

    @property
    def of_units(self) -> Demand:
        """The same where units are all that it asks for."""
        found = self.for_pods(self.pods)
        found.requests, found.topology = (), self.topology
        found.equal = tuple(one.of_units for one in found.equal)
        return found

    def places_in(self, units: int) -> int:
        """How many places so many free units of one node make."""
        units = max(units, 0)
        return usable_slots(units, self.most) if self.most else units // self.units

    def units_for(self, places: int) -> int:
        """How many units of one node have to be free for so many places."""
        return slots_for(places, self.most) if self.most else places * self.units

    def pods_at(self, places: int) -> int:
        """How many pods have so many places of one node."""
        return -(-places // self.most) if self.most else places

    def places_of(self, pods: int) -> int:
        """How many places so many pods of one node may have at most."""
        return pods * self.most if self.most else pods

    def allows(self, node: str) -> bool:
        return (self.nodes is None or node in self.nodes) and node not in self.excluded


class Demands:
    """Gives requests their demands. ``eligible`` is None where nothing is known of nodes but their slots."""

    def __init__(
        self,
        requests: Iterable[PendingAllocation],
        eligible: EligibleNodes | None,
        domains: Domains | None = None,
    ) -> None:
        """``domains`` is None where nobody asks for any."""
        self.eligible = eligible
        self.domains = domains
        self._found: dict[tuple[object, ...], Demand] = {}
        self._in_service: dict[tuple[object, ...], Demand] = {}
        self._kinds: dict[PodRequirements | None, int] = {}
        self._kind_of: dict[int, int] = {}
        self._last: tuple[PendingAllocation | None, Demand] = (None, Demand(units=1, pods=1))
        self.groups: Mapping[str, int] = {}
        self._groups_of: dict[Names, frozenset[int]] = {}
        if eligible is not None:
            for one in requests:
                self.kind(one.needs)
            found = [eligible.of(needs) for needs in self._kinds if needs is not None]
            self.groups = eligible.groups(names for each in found for names in (each.now, each.in_service))

    def kind(self, needs: PodRequirements | None) -> int:
        """A number that equal requirements of the plan have in common: comparing these would take much longer."""
        found = self._kind_of.get(id(needs))  # they are part of the snapshot, and live as long as it does
        if found is None:
            found = self._kind_of[id(needs)] = self._kinds.setdefault(needs, len(self._kinds))
        return found

    def of(self, request: PendingAllocation) -> Demand:
        """What it asks of nodes as they are."""
        if request is self._last[0]:
            return self._last[1]
        key = (request.pods, request.most_per_pod, request.blocked_nodes, self.kind(request.needs), request.topology)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._make(request, request.blocked_nodes, in_service=False)
        self._last = request, found  # a request is looked at from many sides at once
        return found

    def when_in_service(self, request: PendingAllocation, excluded: Collection[str]) -> Demand:
        """What it would ask if every node were in service, with ``excluded`` in place of its own."""
        kind = self.kind(request.needs)
        key = (request.pods, request.most_per_pod, frozenset(excluded), kind, request.topology)
        found = self._in_service.get(key)
        if found is None:
            found = self._in_service[key] = self._make(request, excluded, in_service=True)
        return found

    def _make(self, request: PendingAllocation, excluded: Collection[str], *, in_service: bool) -> Demand:
        needs, nodes = request.needs, None
        if needs is not None and self.eligible is not None:
            eligible = self.eligible.of(needs)
            nodes = eligible.in_service if in_service else eligible.now
        has_all = self.eligible is None or nodes is self.eligible.everything
        groups = None if has_all or nodes is None else self._groups_of.get(nodes)
        if groups is None and not has_all and nodes is not None:
            groups = self._groups_of[nodes] = frozenset(self.groups.get(node, 0) for node in nodes)
        return Demand(
            units=request.pods[0] or 1,
            pods=len(request.pods),
            excluded=excluded,
            nodes=None if has_all else nodes,
            groups=groups,
            requests=beside_slots(needs),
            topology=self._choice(request),
            most=request.most_per_pod,
        )

    def _choice(self, request: PendingAllocation) -> LevelChoice | None:
        if self.domains is None or request.topology is None or len(request.pods) == 1:
            return None
        return self.domains.choice(request.topology)


@lru_cache(_KINDS)
def beside_slots(needs: PodRequirements | None) -> Amounts:
    """What a pod takes of a node beside its slots, itself included."""
    if needs is None:
        return ()
    slot = needs.slot
    # Slots are counted by themselves, and at once; cores that are slots are cores to other pods.
    beside = {name: amount for name, amount in needs.requests if slot is None or name != slot.name or name == CPU}
    return amounts({**beside, PODS: 1})
