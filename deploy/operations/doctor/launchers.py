"""The launcher of every pool: whether it answers, may do what it has to, and says what its pool has."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from deploy.operations.doctor.clocks import TOLERATED_S
from deploy.operations.doctor.findings import Finding, ok, problem, warning
from libs.bus import Bus
from libs.clock import Clock
from libs.cluster.config import ClusterConfig, PoolConfig
from libs.errors import FailedPrecondition, NotFound, PermissionDenied, Unavailable
from libs.events import subjects
from libs.events.capacity import PoolCapacity
from libs.events.cluster_admin import FIND_NAMESPACE, ClusterNamespaceRequest

ANSWERS_WITHIN_S: Final = 5.0
SILENT_AFTER_S: Final = 100.0
"""A launcher reports its capacity every 30 s, whether it has changed or not."""


async def check_launchers(bus: Bus, cluster: ClusterConfig, clock: Clock) -> list[Finding]:
    findings = []
    for pool in cluster.resource_pools:
        findings.append(await _answer(bus, cluster, pool))
        findings.append(about_capacity(pool.pool_name, await _capacity(bus, pool.pool_name), now=clock.now()))
    return findings


async def _answer(bus: Bus, cluster: ClusterConfig, pool: PoolConfig) -> Finding:
    """A question of which every answer tells something: about the namespace that the tasks of the pool run in."""
    part = f"launcher of {pool.pool_name}"
    namespace = pool.kubernetes_namespace or cluster.resource_manager.default_namespace
    question = msgspec.json.encode(ClusterNamespaceRequest(namespace=namespace))
    try:
        await bus.request(subjects.launcher_rpc(pool.pool_name, FIND_NAMESPACE), question, timeout_s=ANSWERS_WITHIN_S)
    except FailedPrecondition:
        return ok(part, "answers")  # its tasks are processes
    except NotFound:
        return problem(part, f"there is no namespace {namespace}", remedy=f"run: kubectl create namespace {namespace}")
    except PermissionDenied as error:
        return problem(part, str(error), remedy="give its ServiceAccount the Role of its pool")
    except Unavailable as error:
        remedy = "see that it runs, and that its user of the bus is that of its pool"
        return problem(part, f"does not answer: {error}", remedy=remedy)
    return ok(part, f"answers, and may run tasks in {namespace}")


async def _capacity(bus: Bus, pool: str) -> PoolCapacity | None:
    """What was last reported; None also where the bucket is missing, which is a finding about the bus."""
    try:
        entry = await bus.bucket(subjects.CAPACITY_BUCKET).get(subjects.capacity_key(pool))
    except Unavailable:
        return None
    return None if entry is None else msgspec.json.decode(entry.value, type=PoolCapacity)


def about_capacity(pool: str, capacity: PoolCapacity | None, *, now: datetime) -> Finding:
    """What the launcher of a pool has last said. Pure."""
    part = f"capacity of {pool}"
    if capacity is None:
        return problem(part, "was never reported", remedy="see that its launcher runs")
    age = (now - datetime.fromisoformat(capacity.seen_at)).total_seconds()
    if age > SILENT_AFTER_S:
        return problem(part, f"was last reported {age:.0f} s ago", remedy="see that its launcher runs")
    if age < -TOLERATED_S:
        remedy = "synchronize the clocks of both machines (NTP)"
        return problem(part, f"the clock of its launcher is {-age:.0f} s ahead of ours", remedy=remedy)
    if not capacity.slots:
        remedy = (
            "see the marks on its nodes and the quota of its namespace; a launcher that may not see nodes needs "
            "deploy/kubernetes/cluster-role.yaml, or kubernetes.assumed_slots"
        )
        return warning(part, "it has no slots", remedy=remedy)
    return ok(part, f"{capacity.slots} slots of type {capacity.slot_type} on {len(capacity.nodes)} nodes")
