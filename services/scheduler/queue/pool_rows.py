"""Reads the rows of a pool into the snapshot that the planner takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec
from msgspec import Struct

from libs.cluster.config import ClusterConfig, PoolConfig, SchedulerConfig
from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from libs.events.capacity import NodeCapacity, PoolCapacity
from libs.maintenance.rows import windows_ahead
from services.scheduler.allocations.pod_sizes import division_of, held_pods, planned_pods
from services.scheduler.plan.forecast.run_times import NOTHING_RAN, PastRuns
from services.scheduler.plan.nodes.requirements import PodRequirements
from services.scheduler.plan.nodes.shapes import ShapedNode
from services.scheduler.plan.snapshot import (
    HeldAllocation,
    NodeSlots,
    PendingAllocation,
    Placement,
    PoolPolicy,
    PoolSnapshot,
)
from services.scheduler.plan.topology.levels import TopologyRequest
from services.scheduler.queue.declared_times import ends_at_of, runs_for_of
from services.scheduler.queue.expected_times import expected_of
from services.scheduler.queue.growth_rows import grows, load_growth
from services.scheduler.queue.guests.pending_rows import Guest, guests_of, held_elsewhere_by_jobs, pending_rows
from services.scheduler.queue.moving.moves import NO_MOVES, OpenMoves, load_moves
from services.scheduler.queue.pool_memory import PoolMemory
from services.scheduler.queue.restricting.maintenance_rows import maintenance_of
from services.scheduler.queue.restricting.restrictions import restrictions_of
from services.scheduler.queue.restricting.shared_limits import SharedLimits, load_shared_limits
from services.scheduler.queue.restricting.shared_nodes import NOTHING_LENT, Lent, SharedNodes, load_lent
from services.scheduler.queue.returned import times_preempted
from services.scheduler.queue.shares import NOTHING_USED, load_shares

_HELD: Final = PreparedStatement("""
    SELECT a.allocation_id, a.job_id, a.task_id, t.task_type, a.slots, a.num_pods, a.places, a.pods, a.namespace,
           a.pool, a.preemptible, a.requested_at, a.assigned_at, a.start_time, a.time_limit_s, a.ran_before_s,
           a.blocked_nodes, a.is_ready, a.preemption_timeout_s,
           EXISTS (
               SELECT FROM pool_offers o WHERE o.job_id = a.job_id AND o.is_open AND o.rank > 0
           ) AS has_several_queues,
           a.preempted_at IS NOT NULL OR a.killed_at IS NOT NULL AS leaving,
           coalesce(j.submitted_at, a.requested_at) AS submitted_at, j.priority, j.max_slots, j.owner_id,
           j.workspace_id, j.weight, j.queue_position, s.saved_at
    FROM allocations a
    LEFT JOIN tasks t ON t.task_id = a.task_id
    LEFT JOIN jobs j ON j.job_id = a.job_id
    LEFT JOIN LATERAL (
        SELECT max(report_time) AS saved_at FROM checkpoints WHERE task_id = a.task_id AND a.preemptible AND :weighs
    ) s ON true
    WHERE a.pool = :pool AND a.released_at IS NULL AND a.assigned_at IS NOT NULL
""")
# The namespace of a workspace is the same for all pools, and so is its quota. What a launcher reports of it is already
# without the pods of other pools, once they are there.
_HELD_ELSEWHERE: Final = PreparedStatement("""
    SELECT a.allocation_id, a.job_id, a.slots, a.num_pods, '[]'::jsonb AS places, a.pods, a.namespace
    FROM allocations a
    WHERE a.pool <> :pool AND a.namespace = ANY(:limited) AND a.released_at IS NULL AND a.assigned_at IS NOT NULL
      AND (a.pods = '[]' OR a.namespace <> ALL(:reported))
""")
# Somebody has lowered what may be held: then there is something to plan, though nothing waits.
_LIMITS_LOWERED: Final = PreparedStatement("""
    SELECT 1 FROM allocations a JOIN jobs j ON j.job_id = a.job_id
    WHERE a.pool = :pool AND a.released_at IS NULL AND a.assigned_at IS NOT NULL AND j.max_slots IS NOT NULL
    GROUP BY j.job_id HAVING sum(a.slots) > j.max_slots
    UNION ALL SELECT 1 FROM resource_limits WHERE preempts AND pool IN ('', :pool)
    LIMIT 1
""")
_QUOTAS_ASKED_FOR: Final = PreparedStatement("""
    SELECT namespace, quota_slots FROM auto_created_namespaces
    WHERE cluster_name = :cluster AND namespace = ANY(:namespaces) AND quota_slots IS NOT NULL
""")


_NO_NAMESPACE: Final = "/"
"""No namespace has this name, so no quota is that of it."""
STARTING_GRACE: Final = timedelta(minutes=5)
"""How long an allocation that has its slots may take to start before it counts as running, and may be preempted."""


class LoadedPool(Struct, frozen=True):
    snapshot: PoolSnapshot
    wait_reasons: Mapping[str, str]
    """What pending allocations say they wait for."""
    namespaces: Mapping[str, str]
    """Where pending allocations would run, as far as that is not the namespace of the pool."""
    trials: Set[str] = frozenset()
    """Pending allocations that are of trials."""
    disabled_nodes: Set[str] = frozenset()
    guests: Mapping[str, Guest] = {}
    """Of pending allocations those that were queued in another pool, and may start in this one, too."""
    rows: Sequence[Mapping[Any, Any]] = ()
    """Of pending allocations."""
    moves: OpenMoves = NO_MOVES
    undivided: Set[str] = frozenset()
    """Pending allocations that are not in the snapshot: their pods would have to differ in size."""
    sees_nodes: bool = True
    """Whether nodes have the names that they have in the cluster."""


async def load_pool(
    connection: Connection,
    pool: PoolConfig,
    *,
    cluster: ClusterConfig,
    capacity: PoolCapacity | None,
    now: datetime,
    limits_may_be_lowered: bool = True,
    is_carried_out: bool = True,
    guests_ahead: bool = False,
    past: PastRuns = NOTHING_RAN,
    memory: PoolMemory | None = None,
    shared_nodes: SharedNodes | None = None,
) -> LoadedPool:
    """Everything that is pending or held in the pool; empty of held ones when nothing is pending.

    limits_may_be_lowered  jobs may hold more than they may now: then what they hold matters, though nothing is pending
    past                   how long others ran
    is_carried_out         the plan of it gives slots in this transaction, so that limits of all pools have to be locked
    guests_ahead           with those that have not waited long enough elsewhere yet: for forecasts, not for plans
    memory                 of plans before
    shared_nodes           those that other pools have, too
    """
    parameters = {"pool": pool.pool_name}
    manager = cluster.resource_manager
    bound_in = manager.cluster_name if manager.has_namespaces else None
    # Who is bound to where the pool runs anyway shares its quota.
    places = {"cluster": bound_in, "own": pool.kubernetes_namespace or manager.default_namespace}
    pools = [one.pool_name for one in cluster.resource_pools]
    pending = await pending_rows(
        connection,
        pool.pool_name,
        pools=pools,
        now=now,
        is_carried_out=is_carried_out,
        guests_ahead=guests_ahead,
        **places,
    )
    has_grown = is_carried_out and pool.growth is not None
    if not (
        pending
        or (limits_may_be_lowered and await _LIMITS_LOWERED.rows(connection, **parameters))
        or (has_grown and await grows(connection, pool.pool_name))
    ):
        return LoadedPool(PoolSnapshot(nodes=None), {}, {})
    scheduler: SchedulerConfig = cluster.scheduler_of(pool)
    growth = None
    if is_carried_out and capacity is not None and capacity.sees_nodes:
        growth = await load_growth(
            connection,
            pool,
            slot_resource=cluster.slot_resource(pool.pool_name),
            max_aux=capacity.max_aux_containers_per_node,
        )
    weighs = scheduler.preempts or scheduler.moves_per_hour > 0
    moves = await load_moves(
        connection,
        pool.pool_name,
        per_hour=scheduler.moves_per_hour,
        pending={row["allocation_id"] for row in pending},
        now=now,
    )
    held = [*await _HELD.rows(connection, **parameters, weighs=weighs), *moves.returning]
    returned = await times_preempted(connection, pool.pool_name, now) if scheduler.preempts else {}
    namespaces = {row["allocation_id"]: row["namespace"] for row in pending if row["namespace"]}
    reported = {} if capacity is None else capacity.quota_slots_of
    quotas = await _quotas(connection, namespaces.values(), reported, cluster_name=manager.cluster_name)
    limits = {"limited": list(quotas), "reported": list(reported)}
    elsewhere = await _HELD_ELSEWHERE.rows(connection, **parameters, **limits) if quotas else ()
    by_jobs = await held_elsewhere_by_jobs(connection, pool.pool_name, pending)
    restrictions = await restrictions_of(connection, pool.pool_name, now)
    excluded = restrictions.disabled_nodes
    default = cluster.default_priority(pool.pool_name)
    memory = PoolMemory(cluster=cluster, pool=pool) if memory is None else memory
    shared = SharedLimits()
    if restrictions.has_limits:
        shared = await load_shared_limits(
            connection,
            pool.pool_name,
            pending,
            held,
            use=memory.use,
            now=now,
            lock=is_carried_out,
            of_all_held=scheduler.moves_per_hour > 0,
        )
    lent = await load_lent(connection, shared_nodes or {})
    weighted = scheduler.type == "fair_share" and restrictions.has_weights
    used = NOTHING_USED if memory.past_use is None else await memory.past_use.read(connection, now)
    shares = await load_shares(connection, scheduler.share_by, (*pending, *held), weighted=weighted, used=used)
    division = division_of(cluster, pool.pool_name, capacity)
    undivided = {row["allocation_id"] for row in pending if division.has_to_wait(row)}
    reasons = {row["allocation_id"]: row["wait_reason"] for row in pending}
    guests = guests_of(pool.pool_name, pending)
    pending = [row for row in pending if row["allocation_id"] not in undivided] if undivided else pending
    needs = await memory.needs(connection, (*pending, *held), capacity)
    own = [
        held_of(
            row,
            default,
            shares.path_of(row),
            shared.keys_of(row),
            expected=expected_of(row, past),
            needs=needs.get(row["allocation_id"]),
            topology=memory.topology_of_allocation(row),
            most_per_pod=division.most_per_pod(row),
        )
        for row in held
    ]
    nodes = None
    if capacity is not None:
        nodes = nodes_of(capacity, excluded, memory.shaped(capacity), lent, domains=memory.domains(capacity))
    windows = await windows_ahead(connection, now) if restrictions.has_maintenance else []
    snapshot = PoolSnapshot(
        nodes=nodes,
        maintenance=maintenance_of(windows, pool.pool_name, nodes or ()) if windows else (),
        held=(
            *own,
            *(off_the_pool(held_elsewhere(row)) for row in elsewhere),
            *(off_the_namespace(off_the_pool(held_elsewhere(row)), leaving=row["leaving"]) for row in by_jobs),
        ),
        pending=tuple(
            request_of(
                row,
                default,
                shares.path_of(row),
                shared.keys_of(row),
                preempted=returned.get(row["allocation_id"], 0),
                expected=expected_of(row, past),
                needs=needs.get(row["allocation_id"]),
                moved_to=moves.places.get(row["allocation_id"], ()),
                topology=memory.topology_of_allocation(row),
                most_per_pod=division.most_per_pod(row),
                not_before=row["not_before"] if guests_ahead else None,
            )
            for row in pending
        ),
        moving=tuple(msgspec.structs.replace(one, needs=needs.get(one.allocation)) for one in moves.moving),
        moves_left=moves.left,
        max_slots_by_job={row["job_id"]: row["max_slots"] for row in (*pending, *held) if row["max_slots"] is not None},
        quota_slots=None if capacity is None else capacity.quota_slots,
        quota_by_namespace=quotas,
        limits=shared.limits,
        weights=shares.weights_of((*pending, *held)) if scheduler.type == "fair_share" else {},
        past_use=shares.past_use,
        half_life=None if scheduler.half_life_s is None else timedelta(seconds=scheduler.half_life_s),
        policy=policy_of(scheduler, larger_priority_first=manager.larger_priority_first),
        growth=growth,
        levels=memory.levels,
        now=now,
    )
    return LoadedPool(
        snapshot,
        wait_reasons=reasons,
        namespaces=namespaces,
        trials={row["allocation_id"] for row in pending if row["is_trial"]},
        disabled_nodes=excluded,
        guests=guests,
        rows=pending,
        moves=moves,
        undivided=undivided,
        sees_nodes=capacity is None or capacity.sees_nodes,
    )


async def _quotas(
    connection: Connection, namespaces: Iterable[str], reported: Mapping[str, int], *, cluster_name: str
) -> dict[str, int]:
    """Slots that namespaces of workspaces allow: as launchers see them, or else as they were asked for."""
    wanted = set(namespaces)
    if not wanted:
        return {}
    parameters = {"cluster": cluster_name, "namespaces": sorted(wanted)}
    asked = await _QUOTAS_ASKED_FOR.rows(connection, **parameters)
    return {row["namespace"]: row["quota_slots"] for row in asked} | {
        namespace: slots for namespace, slots in reported.items() if namespace in wanted
    }


def nodes_of(
    capacity: PoolCapacity,
    excluded: Iterable[str] = (),
    shaped: Mapping[str, ShapedNode] | None = None,
    lent: Lent = NOTHING_LENT,
    *,
    domains: Mapping[str, tuple[str, ...]] | None = None,
) -> tuple[NodeSlots, ...]:
    """The nodes with what others leave of them.

    excluded  those that an administrator has disabled
    shaped    what is known of nodes beside slots, by name
    lent      what tasks of other pools hold, as rows say it
    domains   where nodes are in the levels of the topology, by name

    Who holds what of the rest the rows of this pool's tasks say, better than what was last seen of their pods.
    """
    disabled = frozenset(excluded)
    known, near = shaped or {}, domains or {}
    return tuple(
        NodeSlots(
            name=node.name,
            slots=node.slots - _held_by_strangers(node),
            lent=lent.on(node),
            max_aux=capacity.max_aux_containers_per_node,
            available=node.enabled and not node.draining and node.name not in disabled,
            shaped=known.get(node.name),
            domains=near.get(node.name, ()),
        )
        for node in capacity.nodes
    )


def _held_by_strangers(node: NodeCapacity) -> int:
    return sum(device.container is not None and device.allocation is None for device in node.devices)


def held_of(
    row: Mapping[Any, Any],
    default_priority: int,
    share: str,
    limits: tuple[str, ...] = (),
    *,
    expected: timedelta | None = None,
    needs: PodRequirements | None = None,
    topology: TopologyRequest | None = None,
    most_per_pod: int = 0,
) -> HeldAllocation:
    """What an allocation of this pool holds, and where."""
    placed = held_elsewhere(row)
    return msgspec.structs.replace(
        placed,
        limits=limits,
        share=share,
        priority=row["priority"] if row["priority"] is not None else default_priority,
        submitted_at=row["submitted_at"],
        requested_at=row["requested_at"],
        position=position_of(row),
        preemptible=row["preemptible"],
        leaving=row["leaving"],
        started_at=row["start_time"] or row["assigned_at"] + STARTING_GRACE,
        saved_at=row["saved_at"],
        ends_at=ends_at_of(row),
        expected=expected,
        needs=needs,
        topology=topology,
        most_per_pod=most_per_pod,
        movable=not most_per_pod and _is_movable(row, placed),
        blocked_nodes=frozenset(row["blocked_nodes"]),
    )


def _is_movable(row: Mapping[Any, Any], placed: HeldAllocation) -> bool:
    """Whether all of its pods are on known nodes, and run code that may be asked to leave and goes on elsewhere."""
    asked = row["preemptible"] and row["is_ready"] and row["preemption_timeout_s"] > 0
    return bool(
        asked
        and row["task_type"] == "TRIAL"
        and not row["has_several_queues"]  # it would wait in all of them again
        and len(placed.pods) == row["num_pods"]
        and all(node for node, _ in placed.pods)
    )


def held_elsewhere(row: Mapping[Any, Any]) -> HeldAllocation:
    """What an allocation holds. Pods that have ended hold nothing."""
    return HeldAllocation(
        allocation=row["allocation_id"],
        job=row["job_id"],
        pods=tuple(held_pods(row)),
        namespace=row["namespace"],
    )


def off_the_pool(held: HeldAllocation) -> HeldAllocation:
    """What an allocation of another pool holds of a quota that pools share, and nothing of the nodes of this one:
    there the launcher sees it as foreign."""
    return msgspec.structs.replace(held, pods=tuple(("", slots) for _, slots in held.pods))


def off_the_namespace(held: HeldAllocation, *, leaving: bool) -> HeldAllocation:
    """The same of what counts against the limit of its job alone."""
    return msgspec.structs.replace(held, namespace=_NO_NAMESPACE, leaving=leaving)


def request_of(
    row: Mapping[Any, Any],
    default_priority: int,
    share: str,
    limits: tuple[str, ...] = (),
    *,
    preempted: int = 0,
    expected: timedelta | None = None,
    needs: PodRequirements | None = None,
    moved_to: tuple[Placement, ...] = (),
    topology: TopologyRequest | None = None,
    most_per_pod: int = 0,
    not_before: datetime | None = None,
) -> PendingAllocation:
    pods, most = planned_pods(slots=row["slots"], num_pods=row["num_pods"], most_per_pod=most_per_pod)
    is_beyond_all = len(pods) == 1 < row["num_pods"]
    return PendingAllocation(
        allocation=row["allocation_id"],
        job=row["job_id"],
        pods=pods,
        most_per_pod=most,
        priority=row["priority"] if row["priority"] is not None else default_priority,
        submitted_at=row["submitted_at"],
        requested_at=row["requested_at"],
        position=position_of(row),
        blocked_nodes=frozenset(row["blocked_nodes"]),
        needs=None if is_beyond_all else needs,  # which are those of a smaller pod
        topology=topology,
        namespace=row["namespace"],
        limits=limits,
        share=share,
        preemptible=row["preemptible"],
        runs_for=runs_for_of(row),
        expected=expected,
        asked_before=timedelta(seconds=row["preemption_timeout_s"] if row["preemptible"] else 0),
        nominated=msgspec.convert(row["nominated"] or [], tuple[Placement, ...]) or moved_to,
        moved=bool(moved_to),
        blocked_at=row["blocked_at"],
        overtaken=row["overtaken"] or 0,
        preempted=preempted,
        not_before=not_before,
    )


def position_of(row: Mapping[Any, Any]) -> int | None:
    """Where the job of an allocation was moved to."""
    return None if row["queue_position"] is None else int(row["queue_position"])


def policy_of(scheduler: SchedulerConfig, *, larger_priority_first: bool) -> PoolPolicy:
    return PoolPolicy(
        queue="priority" if scheduler.type == "kubernetes" else scheduler.type,
        preemption=scheduler.preemption and scheduler.has_levels,
        fitting=scheduler.fitting_policy,
        larger_priority_first=larger_priority_first,
        min_runtime=timedelta(seconds=scheduler.min_runtime),
        hold_limit=timedelta(seconds=scheduler.hold_limit),
        max_overtakes=scheduler.max_overtakes,
        max_overtaken_for=timedelta(seconds=scheduler.max_overtaken_for),
    )
