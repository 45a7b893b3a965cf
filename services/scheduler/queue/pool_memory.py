"""What the planner of a pool need not find anew for each plan. Plans do not depend on it, but for moves, which may come
a minute later with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from operator import is_not
from typing import Any, Final

from libs.cluster.config import ClusterConfig, PoolConfig
from libs.db.engine import Connection
from libs.events.capacity import PoolCapacity
from libs.slot_hours.decayed_use import DecayedUse
from libs.slot_hours.period_use import PeriodUse
from services.scheduler.orders.topologies import domains_of_nodes, topology_of
from services.scheduler.plan.nodes.amounts import amounts
from services.scheduler.plan.nodes.eligible import EligibilityMemo
from services.scheduler.plan.nodes.requirements import PodRequirements
from services.scheduler.plan.nodes.shapes import ShapedNode, ShapeTable
from services.scheduler.plan.preemption.searched import SearchMemo
from services.scheduler.plan.topology.levels import TopologyRequest
from services.scheduler.queue.pod_needs import PodNeeds
from services.scheduler.queue.restricting.shared_nodes import SharedNodes, shared_nodes
from services.scheduler.queue.shaped_nodes import shaped_nodes

_SHAPES_KEPT: Final = 10_000


class PoolMemory:
    def __init__(self, *, cluster: ClusterConfig, pool: PoolConfig) -> None:
        self.eligibility = EligibilityMemo()
        self.searched = SearchMemo()
        """For whom nothing could be moved."""
        self.use = PeriodUse()
        """Of limits of slot-hours."""
        half_life_s = cluster.scheduler_of(pool).half_life_s
        self.past_use = None if half_life_s is None else DecayedUse(pool.pool_name, timedelta(seconds=half_life_s))
        """Of the pool; None where it remembers none."""
        self._grows = pool.growth is not None
        self._topology = cluster.scheduler_of(pool).topology
        self._domains: Mapping[str, tuple[str, ...]] = {}
        self._needs = PodNeeds(cluster=cluster, pool=pool.pool_name)
        self._shapes = ShapeTable()
        self._capacity: PoolCapacity | None = None
        self._shaped: Mapping[str, ShapedNode] = {}
        self._capacities: tuple[PoolCapacity, ...] = ()
        self._shared: SharedNodes = {}

    def shared_nodes(self, mine: PoolCapacity | None, capacities: Sequence[PoolCapacity]) -> SharedNodes:
        """The nodes that other pools have, too. ``capacities`` are those of all pools."""
        if mine is None:
            return {}
        known = (mine, *capacities)
        if len(known) != len(self._capacities) or any(map(is_not, known, self._capacities)):
            self._capacities = known
            self._shared = shared_nodes(mine, capacities)
        return self._shared

    def shaped(self, capacity: PoolCapacity) -> Mapping[str, ShapedNode]:
        """The nodes by name; none where the launcher reports slots alone, as those of processes do."""
        if capacity is not self._capacity:
            if len(self._shapes) > _SHAPES_KEPT:
                self._shapes = ShapeTable()
            self._capacity = capacity
            nodes = shaped_nodes(capacity, self._shapes) if capacity.shapes else ()
            self._shaped = {node.name: node for node in nodes}
            self._domains = domains_of_nodes(self._shaped, self.levels)
        return self._shaped

    @property
    def levels(self) -> tuple[str, ...]:
        """Of the topology of the pool."""
        return () if self._topology is None else self._topology.levels

    def domains(self, capacity: PoolCapacity) -> Mapping[str, tuple[str, ...]]:
        """Where each node is in them, by name; nothing where nobody says it."""
        self.shaped(capacity)
        return self._domains

    def topology(self, said: Mapping[str, str] | None) -> TopologyRequest | None:
        """What is asked for by what a configuration says."""
        return topology_of(said, self._topology)

    def topology_of_allocation(self, row: Mapping[Any, Any]) -> TopologyRequest | None:
        """The same of an allocation of the last ``needs``; None where it is a single pod."""
        if row["num_pods"] == 1:
            return None
        return topology_of(self._needs.topologies.get(row["allocation_id"]), self._topology)

    async def needs(
        self, connection: Connection, rows: Iterable[Mapping[Any, Any]], capacity: PoolCapacity | None
    ) -> Mapping[str, PodRequirements]:
        """What the pods of the allocations of ``rows`` require, where it is known what nodes have."""
        # Of a pool that has no node yet, the nodes that it would get are known.
        may_tell = capacity is not None and (capacity.shapes or (self._grows and not capacity.nodes))
        if capacity is None or not may_tell:
            return {}
        return await self._needs.of(connection, rows, amounts(capacity.launcher_requests))

    def needs_of_pod(
        self, task_type: str, pod: dict[str, Any] | None, slots: int, capacity: PoolCapacity | None
    ) -> PodRequirements | None:
        """The same of a pod with ``slots`` of a task of which nothing is stored."""
        if capacity is None or not capacity.shapes:
            return None
        return self._needs.of_pod(task_type, pod, slots, amounts(capacity.launcher_requests))
