"""Estimates when what waits will start, now and then, pool by pool, with the planner in virtual time.

The replays share the processor with the plans of the queues: each of their plans is followed by a pause three times as
long, so that a plan never waits for more than one of them (playing.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Final

import structlog

from libs.clock import Clock
from libs.cluster.config import ClusterConfig, PoolConfig
from libs.db.engine import Database
from libs.events.capacity import PoolCapacity
from libs.telemetry import gauge, histogram
from services.scheduler.forecast.estimate_rows import read_errors, settle_estimates, write_estimates
from services.scheduler.forecast.expectations import expectations
from services.scheduler.forecast.past_runs import PastRunsCache, run_kinds
from services.scheduler.forecast.playing import play
from services.scheduler.forecast.several_pools import (
    NOTHING_EXPECTED,
    PoolEstimates,
    with_other_pools,
    without_early,
)
from services.scheduler.plan.forecast.estimates import StartEstimate, estimates_of, shortened
from services.scheduler.plan.forecast.run_times import PastRuns
from services.scheduler.queue.pool_memory import PoolMemory
from services.scheduler.queue.pool_rows import load_pool
from services.scheduler.settings import ForecastSettings
from services.scheduler.workqueue.loops import run_periodically

log = structlog.get_logger()

_PAUSE_PER_STEP: Final = 3.0
_BUDGET_S: Final = 5.0
"""Processor time of one replay; what has not started by then has no estimate."""
_LARGEST_SHARE: Final = 0.05

FORECAST_SECONDS: Final = histogram(
    "resolute_scheduler_forecast_seconds", "Processor time to estimate the starts of a queue", "pool"
)
ESTIMATE_ERROR: Final = gauge(
    "resolute_scheduler_estimate_error_seconds",
    "Between the first estimate and the start, of the last starts of a pool; quantile is 0.5 or 0.9",
    "pool",
    "quantile",
)


class Forecaster:
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
        self._expected: Mapping[str, datetime] = NOTHING_EXPECTED
        """Starts of what has several queues, by the last round."""
        self._shown: set[str] = set()
        self._estimated = {pool.pool_name for pool in cluster.resource_pools}
        """Pools that may have rows: of those of the scheduler before nobody knows."""

    async def run(self) -> None:
        """Estimate until cancelled."""
        await run_periodically("forecast", self._round, every_s=self._settings.every_s, wake=asyncio.Event())

    async def _round(self) -> None:
        began = time.process_time()
        await self.estimate_all()
        used_s = time.process_time() - began
        await asyncio.sleep(max(used_s / _LARGEST_SHARE - self._settings.every_s, 0.0))

    async def estimate_all(self) -> None:
        """Make the estimates of all pools anew, and compare those of what has started with what happened."""
        started_in: set[str] = set()
        if self._estimated:
            async with self._db.transaction() as connection:
                started_in = await settle_estimates(connection, now=self._clock.now())
        found = [made for pool in self._cluster.resource_pools if (made := await self._estimate(pool)) is not None]
        # What has several queues is known when all of them were looked at.
        self._expected = {
            one.allocation: one.at
            for made in found
            if made.has_shared
            for one in await self._write(made, with_other_pools(made, found))
            if one.at is not None
        }
        for pool in self._cluster.resource_pools:
            if pool.pool_name in started_in or pool.pool_name not in self._shown:
                await self._show_errors(pool.pool_name)

    async def _estimate(self, pool: PoolConfig) -> PoolEstimates | None:
        """Those of a pool; written where nothing of them depends on other pools."""
        capacity = self._capacity(pool.pool_name)
        if capacity is None:
            return None
        async with self._db.read() as connection:
            loaded = await load_pool(
                connection,
                pool,
                cluster=self._cluster,
                capacity=capacity,
                now=self._clock.now(),
                limits_may_be_lowered=False,
                is_carried_out=False,
                guests_ahead=True,
                past=self._past.known,
                memory=self._memories[pool.pool_name],
            )
            snapshot = shortened(without_early(loaded.snapshot, self._expected), self._settings.most)
            ids = [*(one.allocation for one in snapshot.pending), *(one.allocation for one in snapshot.held)]
            kinds = await run_kinds(connection, ids) if snapshot.pending else {}
            past = await self._past.get(connection, now=snapshot.now) if snapshot.pending else PastRuns()
        expected = expectations(snapshot, kinds, past)
        played = await play(snapshot, expected, budget_s=_BUDGET_S, pause_per_step=_PAUSE_PER_STEP)
        if snapshot.pending:
            FORECAST_SECONDS.labels(pool.pool_name).observe(played.used_s)
        if played.is_cut_short:
            log.info("forecast.cut_short", pool=pool.pool_name, found=len(played.replay.starts))
        estimates = estimates_of(snapshot, played.replay, expected.ends)
        made = PoolEstimates(
            pool=pool.pool_name,
            made_at=snapshot.now,
            own=tuple(one for one in estimates if one.allocation not in loaded.guests),
            guests=tuple(one for one in estimates if one.allocation in loaded.guests),
            has_shared=any(row["has_several_queues"] for row in loaded.rows),
        )
        if not made.has_shared:
            await self._write(made, made.own)
        return made

    async def _write(self, made: PoolEstimates, estimates: Collection[StartEstimate]) -> Collection[StartEstimate]:
        if estimates or made.pool in self._estimated:
            async with self._db.transaction() as connection:
                await write_estimates(connection, made.pool, estimates, now=made.made_at)
        if estimates:
            self._estimated.add(made.pool)
        else:
            self._estimated.discard(made.pool)
        return estimates

    async def _show_errors(self, pool: str) -> None:
        async with self._db.read() as connection:
            errors = await read_errors(connection, pool)
        self._shown.add(pool)
        if errors is not None:
            ESTIMATE_ERROR.labels(pool, "0.5").set(errors.median_s)
            ESTIMATE_ERROR.labels(pool, "0.9").set(errors.p90_s)
