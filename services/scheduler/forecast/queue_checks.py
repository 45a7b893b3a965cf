"""Answers when requests would start that nobody has submitted: by the planner, from the rows of now.

The rows that a submission would have made are inserted, read together with all others, and rolled back: so what is
asked about is planned with the same priority, namespace, quota and share as what is submitted. What its pods require,
which would be read from the stored configuration, is taken from the question.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from libs.bus import CoreMessage
from libs.clock import Clock
from libs.cluster.config import ClusterConfig, PoolConfig
from libs.db.engine import Connection, Database
from libs.db.prepared.statements import PreparedStatement
from libs.errors import NotFound, Unavailable
from libs.events.capacity import PoolCapacity
from libs.events.requests.queue_checks import (
    MOST,
    EmptyPoolRequest,
    HypotheticalRequest,
    QueueAnswer,
    QueueAnswers,
    QueueCheck,
    WaitingRequest,
)
from libs.ids import new_uuid
from services.scheduler.allocations.pod_sizes import division_of, smallest_pod
from services.scheduler.forecast.empty_pool import answer_of, in_empty_pool
from services.scheduler.forecast.expectations import Expectations, expectations
from services.scheduler.forecast.past_runs import PastRunsCache, run_kinds
from services.scheduler.forecast.playing import play
from services.scheduler.forecast.several_pools import PoolEstimates, with_other_pools
from services.scheduler.plan.decisions import Wait
from services.scheduler.plan.forecast.estimates import StartEstimate, estimates_of, shortened
from services.scheduler.plan.nodes.requirements import PodRequirements
from services.scheduler.plan.planner import plan
from services.scheduler.plan.reasons import WaitReason
from services.scheduler.plan.snapshot import PoolSnapshot
from services.scheduler.plan.topology.levels import TopologyRequest
from services.scheduler.queue.pool_memory import PoolMemory
from services.scheduler.queue.pool_rows import load_pool
from services.scheduler.settings import ForecastSettings

_BUDGET_S: Final = 3.0
"""Processor time for the replays of one question."""
_PAUSE_PER_STEP: Final = 1.0
_FURTHER: Final = 10
"""How many times as many of a queue are looked at on request as in the background."""
_PATIENCE_S: Final = 15.0

_SUBMIT: Final = PreparedStatement("""
    WITH job AS (
        INSERT INTO jobs (job_id, job_type, owner_id, workspace_id, pool, priority, weight, max_slots, submitted_at)
        VALUES (:ident::text, :job_type::text, :owner::bigint, :workspace::bigint, :pool::text, :priority::int,
                :weight::float8, :max_slots::int, :now::timestamptz)
    ), task AS (
        INSERT INTO tasks (task_id, task_type, job_id, owner_id, workspace_id, start_time)
        VALUES (:ident, :task_type::text, :ident, :owner, :workspace, :now)
        RETURNING task_id
    )
    INSERT INTO allocations (allocation_id, task_id, job_id, name, pool, slots, num_pods, preemptible, state,
                             requested_at, time_limit_s, preemption_timeout_s)
    SELECT :ident, task_id, :ident, '', :pool, :slots::int, :num_pods::int, :preemptible::bool, 'PENDING', :now,
           :time_limit_s::int, :preemption_timeout_s::int
    FROM task
""")
_OFFERED: Final = PreparedStatement("""
    SELECT a.allocation_id, o.pool
    FROM allocations a JOIN pool_offers o ON o.job_id = a.job_id
    WHERE a.allocation_id = ANY(:allocations::text[]) AND o.is_open AND o.rank > 0 AND o.pool <> a.pool
      AND o.pool = ANY(:pools::text[])
    ORDER BY a.allocation_id, o.rank
""")
_BOTH: Final = (True, False)


class QueueChecks:
    """One question at a time: they share the processor with the plans."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        cluster: ClusterConfig,
        capacity: Callable[[str], PoolCapacity | None],
        settings: ForecastSettings,
        past: PastRunsCache,
    ) -> None:
        self._db = db
        self._clock = clock
        self._cluster = cluster
        self._capacity = capacity
        self._settings = settings
        self._past = past
        self._memories = {pool.pool_name: PoolMemory(cluster=cluster, pool=pool) for pool in cluster.resource_pools}
        self._turn = asyncio.Lock()

    async def on_question(self, message: CoreMessage) -> bytes:
        asked = msgspec.json.decode(message.data, type=QueueCheck)
        empty = await self._in_empty_pools(asked.in_empty_pool[:MOST])
        if not asked.requests and not asked.waiting:
            return msgspec.json.encode(QueueAnswers(answers=(), in_empty_pool=empty))  # nobody has to wait for that
        try:
            async with asyncio.timeout(_PATIENCE_S), self._turn:
                answers = await self.answers(asked.requests[:MOST])
                waiting = await self.estimates(asked.waiting[:MOST])
                return msgspec.json.encode(QueueAnswers(answers=answers, waiting=waiting, in_empty_pool=empty))
        except TimeoutError as error:
            raise Unavailable("the scheduler is busy") from error

    async def answers(self, requests: tuple[HypotheticalRequest, ...]) -> tuple[QueueAnswer, ...]:
        """In the order of ``requests``. Raises NotFound for a pool that is not there."""
        by_pool: defaultdict[str, list[int]] = defaultdict(list)
        for place, request in enumerate(requests):
            by_pool[request.pool].append(place)
        found: dict[int, QueueAnswer] = {}
        left_s = _BUDGET_S
        for name, places in by_pool.items():
            pool, idents = self._pool(name), {place: f"check-{new_uuid()}" for place in places}
            snapshot, expected = await self._load(pool, {idents[place]: requests[place] for place in places})
            others = set(idents.values())
            for place, ident in idents.items():
                alone = _without(snapshot, others - {ident})
                found[place], used_s = await self._answer(ident, alone, expected, budget_s=left_s)
                left_s = max(left_s - used_s, 0.0)
        return tuple(found[place] for place in range(len(requests)))

    async def estimates(self, waiting: tuple[WaitingRequest, ...]) -> tuple[QueueAnswer | None, ...]:
        """When those start that wait already, in their order. Raises NotFound for a pool that is not there."""
        by_pool: defaultdict[str, set[str]] = defaultdict(set)
        for one in waiting:
            by_pool[one.pool].add(one.allocation)
        for allocation, pool in await self._offers([one.allocation for one in waiting]):
            by_pool[pool].add(allocation)
        own = {one.allocation: one.pool for one in waiting}
        found: list[PoolEstimates] = []
        left_s = _BUDGET_S
        for name, wanted in by_pool.items():
            snapshot, expected = await self._load(self._pool(name), {}, guests_ahead=True)
            head = shortened(snapshot, _FURTHER * self._settings.most)
            wanted &= {one.allocation for one in head.pending}
            played = await play(
                head,
                expected,
                budget_s=left_s if wanted else 0.0,
                pause_per_step=_PAUSE_PER_STEP,
                is_enough=lambda replay, wanted=wanted: wanted <= replay.starts.keys(),  # type: ignore[misc]
            )
            left_s = max(left_s - played.used_s, 0.0)
            estimates = [one for one in estimates_of(head, played.replay, expected.ends) if one.allocation in wanted]
            mine, theirs = (tuple(one for one in estimates if (own[one.allocation] == name) is here) for here in _BOTH)
            found.append(PoolEstimates(name, snapshot.now, mine, theirs))
        merged = {one.allocation: one for made in found for one in with_other_pools(made, found)}
        return tuple(
            _estimated(QueueAnswer(), merged[one.allocation]) if one.allocation in merged else None for one in waiting
        )

    async def _offers(self, allocations: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Those of ``allocations`` that may start in other pools than their own, with each of these."""
        pools = [pool.pool_name for pool in self._cluster.resource_pools]
        async with self._db.read() as connection:
            rows = await _OFFERED.rows(connection, allocations=list(allocations), pools=pools)
        return ((row["allocation_id"], row["pool"]) for row in rows)

    def _pool(self, name: str) -> PoolConfig:
        if (pool := self._find_pool(name)) is None:
            raise NotFound("resource pool", name)
        return pool

    def _find_pool(self, name: str) -> PoolConfig | None:
        return next((pool for pool in self._cluster.resource_pools if pool.pool_name == name), None)

    async def _load(
        self, pool: PoolConfig, requests: Mapping[str, HypotheticalRequest], *, guests_ahead: bool = False
    ) -> tuple[PoolSnapshot, Expectations]:
        """The pool with ``requests``, by the ids of their allocations, and what is expected of all."""
        now, capacity = self._clock.now(), self._capacity(pool.pool_name)
        memory = self._memories[pool.pool_name]
        async with self._db.transaction() as connection:
            past = await self._past.get(connection, now=now)
            submitted = await connection.begin_nested()
            for ident, request in requests.items():
                await _submit(connection, ident, request, now=now)
            loaded = await load_pool(
                connection,
                pool,
                cluster=self._cluster,
                capacity=capacity,
                now=now,
                limits_may_be_lowered=False,
                is_carried_out=False,
                guests_ahead=guests_ahead,
                past=past,
                memory=memory,
            )
            needs = {
                ident: memory.needs_of_pod(request.task_type, request.pod_spec, self._smallest(pool, request), capacity)
                for ident, request in requests.items()
            }
            topologies = {ident: memory.topology(request.topology) for ident, request in requests.items()}
            snapshot = _with_needs(loaded.snapshot, needs, topologies)
            ids = [*(one.allocation for one in snapshot.pending), *(one.allocation for one in snapshot.held)]
            kinds = await run_kinds(connection, ids)
            await submitted.rollback()
        return snapshot, expectations(snapshot, kinds, past)

    async def _in_empty_pools(self, asked: Sequence[EmptyPoolRequest]) -> tuple[QueueAnswer, ...]:
        found: list[QueueAnswer] = []
        for one in asked:
            if found:
                await asyncio.sleep(0)  # each is a plan of a whole pool: others go on between two of them
            found.append(self._in_empty_pool(one))
        return tuple(found)

    def _in_empty_pool(self, asked: EmptyPoolRequest) -> QueueAnswer:
        if self._find_pool(asked.pool) is None:
            return QueueAnswer()  # the api has been told of a pool that this scheduler will learn of when it is updated
        capacity = self._capacity(asked.pool)
        division = division_of(self._cluster, asked.pool, capacity)
        return in_empty_pool(asked, capacity, self._memories[asked.pool], division)

    def _smallest(self, pool: PoolConfig, request: HypotheticalRequest) -> int:
        return smallest_pod(self._cluster, pool.pool_name, slots=request.slots, num_pods=request.num_pods)

    async def _answer(
        self, ident: str, snapshot: PoolSnapshot, expected: Expectations, *, budget_s: float
    ) -> tuple[QueueAnswer, float]:
        """The answer, and how much of the budget it has taken."""
        decided = (one for one in plan(snapshot).decisions if one.allocation == ident)
        answer = answer_of(next(decided, Wait(ident, WaitReason.EQUAL_PODS)))
        if answer.starts_now or not answer.is_possible or snapshot.nodes is None:
            return answer, 0.0
        head = shortened(snapshot, self._settings.most)
        if all(one.allocation != ident for one in head.pending):
            return answer, 0.0
        played = await play(
            head,
            expected,
            budget_s=budget_s,
            pause_per_step=_PAUSE_PER_STEP,
            is_enough=lambda replay: ident in replay.starts,
        )
        (estimate,) = (one for one in estimates_of(head, played.replay, expected.ends) if one.allocation == ident)
        return _estimated(answer, estimate), played.used_s


async def _submit(connection: Connection, ident: str, request: HypotheticalRequest, **moment: object) -> None:
    await _SUBMIT.rows(
        connection,
        ident=ident,
        job_type="EXPERIMENT" if request.task_type == "TRIAL" else request.task_type,
        task_type=request.task_type,
        preemptible=request.is_preemptible,
        owner=request.owner_id,
        workspace=request.workspace_id,
        pool=request.pool,
        priority=request.priority,
        weight=request.weight,
        max_slots=request.max_slots,
        slots=request.slots,
        num_pods=request.num_pods,
        time_limit_s=request.time_limit_s,
        preemption_timeout_s=request.preemption_timeout_s,
        **moment,
    )


def _estimated(answer: QueueAnswer, estimate: StartEstimate) -> QueueAnswer:
    return msgspec.structs.replace(
        answer,
        estimated_start=estimate.at,
        basis=estimate.basis,
        jobs_ahead=estimate.ahead.jobs,
        slots_ahead=estimate.ahead.slots,
    )


def _with_needs(
    snapshot: PoolSnapshot,
    needs: Mapping[str, PodRequirements | None],
    topologies: Mapping[str, TopologyRequest | None],
) -> PoolSnapshot:
    """``needs`` and ``topologies``: of some that are pending."""
    pending = (
        msgspec.structs.replace(one, needs=needs[one.allocation], topology=topologies[one.allocation])
        if one.allocation in needs
        else one
        for one in snapshot.pending
    )
    return msgspec.structs.replace(snapshot, pending=tuple(pending))


def _without(snapshot: PoolSnapshot, allocations: set[str]) -> PoolSnapshot:
    pending = tuple(one for one in snapshot.pending if one.allocation not in allocations)
    return msgspec.structs.replace(snapshot, pending=pending)
