"""What may start in several pools is estimated in all of them, and told the first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from libs.cluster.config import ClusterConfig, PoolConfig
from libs.db.jobs.pool_offers import PoolOffer
from libs.db.tables.tasks import start_estimates
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.events.requests.queue_checks import WaitingRequest
from services.scheduler.forecast.forecaster import Forecaster
from services.scheduler.forecast.past_runs import PastRunsCache
from services.scheduler.forecast.queue_checks import QueueChecks
from services.scheduler.settings import ForecastSettings
from tests.harness import FakeClock, eventually
from tests.integration.scheduler.world import World

HOUR = timedelta(hours=1)
POOLS = ClusterConfig(resource_pools=(PoolConfig(pool_name="default"), PoolConfig(pool_name="other")))
NODE = NodeCapacity(name="node0", devices=tuple(Device(id=f"{i:03}") for i in range(8)))


@pytest.mark.parametrize(("after_s", "is_elsewhere"), [(600, True), (6 * 3600, False)])
async def test_it_is_told_the_first_pool_in_which_it_can_start(world: World, after_s: int, is_elsewhere: bool) -> None:
    waiting = await _one_that_waits(world, after_s)
    now = datetime.now(UTC)
    parts: dict[str, Any] = {
        "db": world.db,
        "clock": FakeClock(now),
        "cluster": world.cluster,
        "capacity": lambda pool: PoolCapacity(pool=pool, backend="process", nodes=(NODE,)),
        "settings": ForecastSettings(),
        "past": PastRunsCache(otherwise=HOUR),
    }
    forecaster = Forecaster(**parts)
    for _ in range(2):
        await forecaster.estimate_all()
        [row] = await _estimates(world)
        assert row["pool"] == "default", "it has one estimate, in its own queue"
        assert row["jobs_ahead"] == 0
        assert row["made_at"] == now <= row["estimated_at"]
        _check(row["estimated_at"] - now, row["basis"], is_elsewhere=is_elsewhere)
    [answer] = await QueueChecks(**parts).estimates((WaitingRequest(pool="default", allocation=waiting),))
    assert answer is not None
    assert answer.estimated_start is not None
    _check(answer.estimated_start - now, answer.basis, is_elsewhere=is_elsewhere)


def _check(wait: timedelta, basis: str, *, is_elsewhere: bool) -> None:
    if is_elsewhere:
        assert timedelta(minutes=8) < wait <= timedelta(minutes=10)
        assert basis == "in resource pool other: there is room for it then"
    else:
        assert HOUR / 2 < wait <= 2 * HOUR
        assert basis.startswith("it gets 8 slots from 1 task")


async def _one_that_waits(world: World, after_s: int) -> str:
    """Behind one that runs on all slots of the pool ``default``."""
    world.cluster = POOLS
    resources = {"slots_per_trial": 8, "resource_pool": "default"}
    own = PoolOffer(pool="default", rank=0, after_s=0, num_pods=1, time_limit_s=None)
    async with world.scheduling() as w:
        await w.api.create(resources=resources)
        await w.launcher.running()
        fallback = {**resources, "fallback_pools": [{"pool": "other", "after": after_s}]}
        offers = (own, msgspec.structs.replace(own, pool="other", rank=1, after_s=after_s))
        experiment = await w.api.create(resources=fallback, offers=offers)
        await eventually(lambda: w.api.allocations(experiment))
        [row] = await w.api.allocations(experiment)
    await world.api.sql("DELETE FROM start_estimates")  # of a scheduler that was slow
    found: str = row["allocation_id"]
    return found


async def _estimates(world: World) -> Any:
    async with world.db.read() as connection:
        return (await connection.execute(select(start_estimates))).mappings().all()
