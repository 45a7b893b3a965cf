"""Estimates of starts, from the rows that they are made of to those that say how far off they were."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from libs.db.tables.tasks import estimate_errors, start_estimates
from libs.events.capacity import Device, NodeCapacity, PoolCapacity
from libs.telemetry import value
from services.scheduler.forecast.forecaster import Forecaster
from services.scheduler.forecast.past_runs import PastRunsCache
from services.scheduler.plan.forecast.run_times import PastRuns, RunKind
from services.scheduler.queue.pool_rows import load_pool
from services.scheduler.settings import ForecastSettings
from tests.harness import FakeClock, eventually
from tests.integration.scheduler.world import World

HOUR = timedelta(hours=1)
CAPACITY = PoolCapacity(
    pool="default",
    backend="process",
    nodes=(NodeCapacity(name="node0", devices=tuple(Device(id=f"{i:03}") for i in range(8))),),
    max_aux_containers_per_node=100,
)


async def test_estimates_are_kept_while_something_waits_and_compared_when_it_starts(world: World) -> None:
    first, second = await _two_that_wait(world)
    now = datetime.now(UTC)
    clock = FakeClock(now)
    forecaster = _forecaster(world, clock)
    await forecaster.estimate_all()
    estimates = await _rows(world, start_estimates)
    starts = {one["allocation_id"]: one["estimated_at"] for one in estimates}
    assert HOUR / 2 < starts[first] - now <= 2 * HOUR, "nothing has run yet: the default"
    assert timedelta() <= starts[second] - starts[first] - HOUR <= HOUR / 10
    assert [(one["jobs_ahead"], one["slots_ahead"]) for one in estimates] == [(0, 0), (1, 8)]
    assert "expected to end at" in estimates[0]["basis"]

    clock.advance(600)
    await forecaster.estimate_all()
    again = await _rows(world, start_estimates)
    assert [one["first_estimate"] for one in again] == [starts[first], starts[second]], "the first stays"
    assert all(one["made_at"] == clock.now() for one in again)

    started_at = starts[first] - timedelta(minutes=5)
    set_started = "UPDATE allocations SET assigned_at = :at, state = 'ASSIGNED' WHERE allocation_id = :id"
    await world.api.sql(set_started, at=started_at, id=first)
    await forecaster.estimate_all()
    [error] = await _rows(world, estimate_errors)
    assert (error["allocation_id"], error["estimated_at"], error["started_at"]) == (first, starts[first], started_at)
    for quantile in ("0.5", "0.9"):
        shown = value("resolute_scheduler_estimate_error_seconds", pool="default", quantile=quantile)
        assert abs(shown - 300) < 1
    assert [one["allocation_id"] for one in await _rows(world, start_estimates)] == [second]

    await world.api.sql("UPDATE allocations SET released_at = now() WHERE assigned_at IS NULL")
    await forecaster.estimate_all()
    assert await _rows(world, start_estimates) == []
    assert len(await _rows(world, estimate_errors)) == 1, "what never started says nothing"


async def test_only_the_head_of_a_long_queue_is_estimated(world: World) -> None:
    first, second = await _two_that_wait(world)
    clock = FakeClock(datetime.now(UTC))
    await _forecaster(world, clock).estimate_all()
    assert [one["allocation_id"] for one in await _rows(world, start_estimates)] == [first, second]
    clock.advance(30)
    await _forecaster(world, clock, most=1).estimate_all()
    assert [one["allocation_id"] for one in await _rows(world, start_estimates)] == [first]


async def test_what_ran_to_its_end_is_what_is_expected(world: World) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    usage = (
        "INSERT INTO allocation_usage (allocation_id, task_id, task_type, owner_id, workspace_name, pool, slots,"
        " requested_at, start_time, end_time) VALUES (:id, 't', 'TRIAL', :owner, 'w', 'default', :slots,"
        " :start, :start, :end)"
    )
    for number, (owner, slots, minutes) in enumerate(
        [(1, 4, 10), (1, 3, 20), (1, 4, 90), (1, 1, 1000), (2, 0, 5), (2, 0, 6)]
    ):
        ran = {"start": now - HOUR - timedelta(minutes=minutes), "end": now - HOUR}
        await world.api.sql(usage, id=f"a{number}", owner=owner, slots=slots, **ran)
    async with world.db.read() as connection:
        past = await PastRunsCache(otherwise=HOUR).get(connection, now=now)

    def expected(owner: int, slots: int) -> float:
        kind = RunKind(owner=owner, task_type="TRIAL", pool="default", slots=slots)
        return past.expect(kind).length / timedelta(minutes=1)

    assert expected(1, 4) == 20, "the median of three runs of this size"
    assert expected(1, 1) == 55, "of all four runs of this user"
    assert expected(2, 0) == 15, "of all six runs in the pool"


async def test_plans_are_told_what_is_expected(world: World) -> None:
    await _two_that_wait(world)
    past = PastRuns(by_pool={("default", "TRIAL"): (HOUR / 2, 3)})
    for known, expected in ((past, HOUR / 2), (PastRuns(), None)):
        async with world.db.read() as connection:
            pool = world.cluster.pool("default")
            assert pool is not None
            now = datetime.now(UTC)
            loaded = await load_pool(
                connection, pool, cluster=world.cluster, capacity=CAPACITY, now=now, is_carried_out=False, past=known
            )
        told = (*loaded.snapshot.held, *loaded.snapshot.pending)
        assert [one.expected for one in told] == [expected, expected, expected]


async def _two_that_wait(world: World) -> tuple[str, str]:
    """Behind one that runs, each for the whole pool."""
    async with world.scheduling() as w:
        await w.api.create(resources={"slots_per_trial": 8, "resource_pool": "default"})
        await w.launcher.running()
        found = []
        for _ in range(2):
            experiment = await w.api.create(resources={"slots_per_trial": 8, "resource_pool": "default"})
            await eventually(lambda experiment=experiment: w.api.allocations(experiment))
            [row] = await w.api.allocations(experiment)
            found.append(row["allocation_id"])
    await world.api.sql("DELETE FROM start_estimates")  # of a scheduler that was slow
    return found[0], found[1]


def _forecaster(world: World, clock: FakeClock, **settings: Any) -> Forecaster:
    return Forecaster(
        db=world.db,
        clock=clock,
        cluster=world.cluster,
        capacity=lambda _: CAPACITY,
        settings=ForecastSettings(**settings),
        past=PastRunsCache(otherwise=HOUR),
    )


async def _rows(world: World, table: Any) -> list[Any]:
    async with world.db.read() as connection:
        found = await connection.execute(select(table).order_by(table.c.allocation_id))
        return list(found.mappings())
