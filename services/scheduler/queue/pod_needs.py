"""What the pods of allocations require of nodes, and how near to each other they are to be, read once per allocation
from what is stored of its task.

It is read when an allocation is first seen: the configuration of an experiment that is continued may be another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from libs.cluster.config import ClusterConfig
from libs.db.engine import Connection
from libs.db.prepared.statements import PreparedStatement
from services.scheduler.allocations.pod_sizes import smallest_pod
from services.scheduler.orders.pod_requirements import task_requirements
from services.scheduler.plan.nodes.amounts import Amounts
from services.scheduler.plan.nodes.requirements import PodRequirements

_OF_EXPERIMENTS: Final = PreparedStatement("""
    SELECT e.job_id, CASE WHEN o.changes->'environment' ? 'pod_spec' THEN o.changes->'environment'->'pod_spec'
                     ELSE e.config->'environment'->'pod_spec' END AS pod,
           e.config->'resources'->'topology' AS topology
    FROM experiments e LEFT JOIN pool_offers o ON o.job_id = e.job_id AND o.pool = :pool AND o.rank > 0
    WHERE e.job_id = ANY(:jobs)
""")
_OF_TASKS: Final = PreparedStatement("""
    SELECT t.task_id, CASE WHEN o.changes->'environment' ? 'pod_spec' THEN o.changes->'environment'->'pod_spec'
                      ELSE t.spec->'environment'->'pod_spec' END AS pod,
           g.config->'resources'->'topology' AS topology
    FROM tasks t LEFT JOIN pool_offers o ON o.job_id = t.job_id AND o.pool = :pool AND o.rank > 0
    LEFT JOIN generic_tasks g ON g.task_id = t.task_id
    WHERE t.task_id = ANY(:tasks)
""")
_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_KINDS_KEPT: Final = 10_000
_NOTHING: Final[Mapping[Any, Any]] = {"pod": None, "topology": None}


class PodNeeds:
    """Of one pool."""

    def __init__(self, *, cluster: ClusterConfig, pool: str) -> None:
        self._cluster = cluster
        self._pool = pool
        self._launcher_requests: Amounts = ()
        self._by_allocation: dict[str, PodRequirements] = {}
        self.topologies: dict[str, Mapping[str, str]] = {}
        """What is said of the topology, by allocation, where something is."""
        self._by_kind: dict[tuple[str, int, bytes], PodRequirements] = {}
        """Equal requirements are one object, which plans compare quickly."""

    async def of(
        self, connection: Connection, rows: Iterable[Mapping[Any, Any]], launcher_requests: Amounts
    ) -> Mapping[str, PodRequirements]:
        """By allocation; what is of other allocations than those of ``rows`` is forgotten.

        launcher_requests  of the containers that the launcher adds to each pod
        """
        self._heed(launcher_requests)
        rows = list(rows)
        known = self._by_allocation
        self._by_allocation = {id_: known[id_] for row in rows if (id_ := row["allocation_id"]) in known}
        self.topologies = {id_: said for id_, said in self.topologies.items() if id_ in self._by_allocation}
        await self._read(connection, [row for row in rows if row["allocation_id"] not in known])
        return self._by_allocation

    def of_pod(
        self, task_type: str, pod: dict[str, Any] | None, slots: int, launcher_requests: Amounts
    ) -> PodRequirements:
        """Of a task of which nothing is stored.

        pod    what would be stored of it
        slots  of one pod
        """
        self._heed(launcher_requests)
        return self._of_kind(task_type, pod, slots)

    def _heed(self, launcher_requests: Amounts) -> None:
        if launcher_requests != self._launcher_requests:
            self._launcher_requests = launcher_requests
            self._by_allocation, self._by_kind = {}, {}

    async def _read(self, connection: Connection, rows: list[Mapping[Any, Any]]) -> None:
        jobs = {row["job_id"] for row in rows if row["task_type"] == "TRIAL"}
        tasks = {row["task_id"] for row in rows if row["task_type"] != "TRIAL"}
        stored: dict[str, Mapping[Any, Any]] = {}
        if jobs:
            found_jobs = await _OF_EXPERIMENTS.rows(connection, jobs=list(jobs), pool=self._pool)
            stored |= {found["job_id"]: found for found in found_jobs}
        if tasks:
            found_tasks = await _OF_TASKS.rows(connection, tasks=list(tasks), pool=self._pool)
            stored |= {found["task_id"]: found for found in found_tasks}
        for row in rows:
            origin = row["job_id"] if row["task_type"] == "TRIAL" else row["task_id"]
            each = smallest_pod(self._cluster, self._pool, slots=row["slots"], num_pods=row["num_pods"])
            found = stored.get(origin, _NOTHING)
            self._by_allocation[row["allocation_id"]] = self._of_kind(row["task_type"] or "", found["pod"], each)
            if found["topology"]:
                self.topologies[row["allocation_id"]] = found["topology"]

    def _of_kind(self, task_type: str, pod: dict[str, Any] | None, slots: int) -> PodRequirements:
        key = (task_type, slots, _ENCODER.encode(pod))
        found = self._by_kind.get(key)
        if found is None:
            if len(self._by_kind) >= _KINDS_KEPT:
                self._by_kind.clear()
            found = self._by_kind[key] = task_requirements(
                task_type,
                pod,
                cluster=self._cluster,
                pool=self._pool,
                slots=slots,
                launcher_requests=self._launcher_requests,
            )
        return found
