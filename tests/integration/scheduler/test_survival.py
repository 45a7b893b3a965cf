"""Schedulers that are killed, doubled, or left without news; observations that come twice, late or out of order."""

from __future__ import annotations

import asyncio
import random
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from libs.bus import BusSettings
from libs.db.relay import relay_outbox
from libs.events import subjects
from libs.events.observations import AllocationObserved, ObservedPod
from libs.events.orders import Order
from libs.run_until_first_exits import end
from libs.searchers.actions import Create
from libs.searchers.searcher import Searcher
from services.scheduler.scheduler_lease import hold_lease
from services.scheduler.settings import LeaseSettings
from tests.harness import ServiceProcess, eventually
from tests.integration.scheduler.deletion.test_endings import _launch_notebook
from tests.integration.scheduler.world import QUICK, World, background

LR: dict[str, Any] = {"lr": {"type": "double", "minval": 0, "maxval": 1}}
SEARCH: dict[str, Any] = {"name": "random", "metric": "loss", "max_trials": 8, "max_concurrent_trials": 3}


def expected_request_ids(trials: int) -> list[str]:
    """The trials that this search creates when nothing is ever lost or done twice; those of other searches are drawn
    in the same way."""
    searcher = Searcher.create(
        {**SEARCH, "max_trials": trials}, {"lr": {"type": "double", "minval": 0, "maxval": 1}}, 7
    )
    todo = [action for action in searcher.initial_trials() if isinstance(action, Create)]
    found: list[str] = []
    while todo:
        create = todo.pop(0)
        searcher.trial_created(create.request_id)
        found.append(create.request_id)
        todo += [action for action in searcher.trial_exited(create.request_id) if isinstance(action, Create)]
    assert len(found) == trials
    return found


def behave(world: World, experiment: int, rng: random.Random) -> None:
    """Every task runs a moment, reports a validation, and exits with success; nothing is reported twice or lost."""

    async def task(order: Order) -> None:
        assert order.spec is not None
        assert order.spec.trial is not None
        trial = order.spec.trial.trial_id
        await world.launcher.see(order.allocation, "RUNNING")
        await asyncio.sleep(rng.uniform(0, 0.05))
        await world.api.tell_search(trial, "validation", {"metrics": {"loss": 0.5}})
        await world.api.report_progress(trial, 0.5)
        await world.launcher.exit(order.allocation)

    world.launcher.on_run = task


async def check_nothing_was_done_twice(world: World, experiment: int) -> None:
    trials = await world.api.trials(experiment)
    assert sorted(t["request_id"] for t in trials) == sorted(expected_request_ids(8))
    assert [t["local_id"] for t in trials] == list(range(1, 9))
    assert {t["state"] for t in trials} == {"COMPLETED"}
    assert {(t["run_id"], t["restarts"]) for t in trials} == {(1, 0)}
    allocations = await world.api.allocations(experiment)
    assert sorted(a["allocation_id"] for a in allocations) == sorted(
        f"{experiment}.{t['request_id']}.1" for t in trials
    )
    assert all(a["exit_processed"] for a in allocations)
    assert await world.api.sql("SELECT count(*) FROM searcher_events") == [0]
    assert await world.api.sql("SELECT count(*) FROM allocation_sessions WHERE revoked_at IS NULL") == [0]


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_search_survives_a_scheduler_that_is_cut_off_at_random_points(world: World, seed: int) -> None:
    rng = random.Random(seed)
    await world.launcher.offer()
    experiment = await world.api.create(searcher=SEARCH, hyperparameters=LR)
    behave(world, experiment, rng)
    async with background(relay_outbox(world.db, world.bus), world.launcher.run()):
        deaths = 0
        while await world.api.state(experiment) != "COMPLETED":
            assert deaths < 400
            acting = asyncio.ensure_future(world.scheduler(QUICK).run())
            # Ever longer by a share: a machine ten times as slow needs some more lives, and not ten times as many.
            await asyncio.sleep(rng.uniform(0.005, 0.12) * 1.05**deaths)
            await end(acting)
            deaths += 1
        assert deaths > 3
        async with background(world.scheduler(QUICK).run()):
            await eventually(lambda: not world.launcher.orders)
    await check_nothing_was_done_twice(world, experiment)


async def test_search_survives_two_schedulers_at_once(world: World) -> None:
    async with world.scheduling(schedulers=2) as w:
        experiment = await w.api.create(searcher=SEARCH, hyperparameters=LR, activate=False)
        behave(w, experiment, random.Random(4))
        await w.api.activate(experiment)
        await w.api.ended(experiment, "COMPLETED")
    await check_nothing_was_done_twice(world, experiment)


def _scheduler_process(own_database_url: str, bus_settings: BusSettings, tmp_path: Path) -> ServiceProcess:
    settings = tmp_path / "scheduler.yaml"
    settings.write_text(
        yaml.safe_dump(
            {
                "database": {"url": own_database_url.replace("+asyncpg", ""), "pool_size": 6},
                "bus": {"url": bus_settings.url},
                "engine": {"resync_s": 0.5, "log_wait_s": 0},
                "queue": {"resync_s": 0.5, "plan_interval_s": 0.02},
                "lease": {"retry_s": 0.1},
            }
        )
    )
    return ServiceProcess("services.scheduler.main", "--settings", str(settings), log_path=tmp_path / "log")


async def test_search_survives_kill_9(
    world: World, own_database_url: str, bus_settings: BusSettings, tmp_path: Path
) -> None:
    rng = random.Random(5)
    process = _scheduler_process(own_database_url, bus_settings, tmp_path)
    await world.launcher.offer()
    experiment = await world.api.create(searcher=SEARCH, hyperparameters=LR)
    behave(world, experiment, rng)
    with process:
        async with background(world.launcher.run()):
            for term in range(1, 4):
                await eventually(lambda: _terms(process) == term)  # noqa: B023  # awaited in the round
                # Long enough to start working, too short to finish.
                await asyncio.sleep(rng.uniform(0.02, 0.2))
                await asyncio.to_thread(process.restart)
            await world.api.ended(experiment, "COMPLETED")
            await eventually(lambda: not world.launcher.orders)
        assert await asyncio.to_thread(process.stop) == 0
    await check_nothing_was_done_twice(world, experiment)


@pytest.mark.parametrize(
    "trials", [40, pytest.param(1000, marks=[pytest.mark.chaos, pytest.mark.long, pytest.mark.timeout(3600)])]
)
async def test_a_large_search_with_early_stops_survives_kill_9(
    world: World, own_database_url: str, bus_settings: BusSettings, tmp_path: Path, trials: int
) -> None:
    asha = {"name": "adaptive_asha", "time_metric": "batches", "max_time": 4, "divisor": 2}
    search = {**SEARCH, **asha, "max_trials": trials, "max_concurrent_trials": 8}
    process = _scheduler_process(own_database_url, bus_settings, tmp_path)
    await world.launcher.offer()
    experiment = await world.api.create(searcher=search, hyperparameters=LR)
    reports: Counter[str] = Counter()

    async def train(order: Order) -> None:
        assert order.spec is not None
        assert order.spec.trial is not None
        await world.launcher.see(order.allocation, "RUNNING")
        await world.api.ready(order.allocation)
        for step in range(1, 5):
            metrics = {"loss": zlib.crc32(f"{order.spec.trial.trial_id}".encode()), "batches": step}
            await world.api.tell_search(order.spec.trial.trial_id, "validation", {"metrics": metrics})
            reports[order.allocation] += 1
            await asyncio.sleep(0.05)
            told = "SELECT 1 FROM allocations WHERE allocation_id = :a AND preempted_at IS NOT NULL"
            if await world.api.sql(told, a=order.allocation):
                await world.api.ack(order.allocation)
                break
        await world.launcher.exit(order.allocation)

    world.launcher.on_run = train
    with process:
        async with background(world.launcher.run()):
            for part in (1, 2):  # a crash with a third of it done, and another with two thirds
                await eventually(lambda: len(reports) > part * trials // 3, timeout_s=1800)  # noqa: B023
                await asyncio.to_thread(process.restart)
            await eventually(lambda: _ended_well(world, experiment), timeout_s=1800)
        assert await asyncio.to_thread(process.stop) == 0
    rows = await world.api.trials(experiment)
    assert sorted(row["request_id"] for row in rows) == sorted(expected_request_ids(trials))
    assert {(row["state"], row["run_id"], row["restarts"]) for row in rows} == {("COMPLETED", 1, 0)}
    assert [row["local_id"] for row in rows] == list(range(1, trials + 1))
    assert len(reports) == trials
    assert min(reports.values()) < max(reports.values()) == 4, "nobody was stopped early"
    assert await world.api.sql("SELECT count(*) FROM searcher_events") == [0]
    assert await world.api.sql("SELECT count(*) FROM allocations WHERE NOT exit_processed") == [0]


async def _ended_well(world: World, experiment: int) -> bool:
    return await world.api.state(experiment) == "COMPLETED"


async def test_nothing_depends_on_notifications(world: World) -> None:
    """The outbox is not relayed while the experiment is created, killed, and so on: no notification ever arrives."""
    await world.launcher.offer()
    async with background(world.scheduler(QUICK).run()):
        experiment = await world.api.create()
        [allocation] = await eventually(lambda: world.api.allocations(experiment))
        ident = allocation["allocation_id"]
        await eventually(lambda: _has(world, ident, "assigned_at"))
        await world.api.kill(experiment)
        await eventually(lambda: _has(world, ident, "killed_at"))
        await world.launcher.publish(
            AllocationObserved(allocation=ident, pool="default", revision=1, gone=True, stopped=True)
        )
        await world.api.ended(experiment, "CANCELED")


async def test_observations_may_come_twice_late_and_out_of_order(world: World) -> None:
    async with world.scheduling() as w:
        w.launcher.on_run = _nothing
        experiment = await w.api.create(max_restarts=0)
        [ident] = await w.launcher.running()

        def seen(revision: int, state: str, **pod: Any) -> AllocationObserved:
            pods = (ObservedPod(name="p", node="node0", state=state, **pod),)  # type: ignore[arg-type]
            return AllocationObserved(allocation=ident, pool="default", revision=revision, pods=pods)

        await w.launcher.publish(seen(3, "RUNNING"))
        await eventually(lambda: _is_in(w, ident, "RUNNING"))
        await w.launcher.publish(seen(1, "STARTING"))
        await w.launcher.publish(seen(2, "TERMINATED", exit_code=1, failure="FAILED"))
        await w.launcher.publish(
            msgspec.structs.replace(seen(9, "TERMINATED", exit_code=1, failure="FAILED"), pool="another pool")
        )
        for _ in range(3):
            await w.launcher.publish(seen(5, "TERMINATED", exit_code=0))
        await w.launcher.publish(seen(6, "TERMINATED", exit_code=3, failure="FAILED"))
        await w.launcher.publish(seen(4, "RUNNING"))
        await w.api.ended(experiment, "COMPLETED")
        assert len(await w.api.allocations()) == 1


async def test_a_launcher_ends_no_allocation_of_another_pool(world: World) -> None:
    """Its credentials let it publish on its own subjects; what it writes there is its own affair."""
    async with world.scheduling() as w:
        w.launcher.on_run = _nothing
        await w.api.create()
        [ident] = await w.launcher.running()
        lie = AllocationObserved(allocation=ident, pool="default", revision=10, gone=True, failure="FAILED")
        elsewhere = subjects.observed("another pool", ident)
        of_another = subjects.observed("default", "1.x.1")
        for subject, said in (
            (elsewhere, lie),
            (of_another, lie),
            (elsewhere, msgspec.structs.replace(lie, pool="another pool")),
        ):
            await w.bus.publish(subject, msgspec.json.encode(said))
        pods = (ObservedPod(name="p", node="node0", state="RUNNING"),)
        await w.launcher.publish(AllocationObserved(allocation=ident, pool="default", revision=1, pods=pods))
        await eventually(lambda: _is_in(w, ident, "RUNNING"))
        [row] = await w.api.allocations()
        assert (row["revision"], row["released_at"]) == (1, None)


async def test_unreadable_observations_hold_nobody_up(world: World) -> None:
    async with world.scheduling() as w:
        subject = subjects.observed("default", "1.x.1")
        await w.bus.publish(subject, b"not json")
        await w.launcher.publish(AllocationObserved(allocation="no.such.1", pool="default", revision=1, gone=True))
        experiment = await w.api.create()
        [allocation] = await w.launcher.running()
        await w.launcher.exit(allocation)
        await w.api.ended(experiment, "COMPLETED")


async def test_lost_orders_are_written_again_and_stale_ones_withdrawn(world: World) -> None:
    async with world.scheduling() as w:
        await w.api.create()
        [allocation] = await w.launcher.running()
        key = subjects.order_key("default", allocation)
        bucket = w.bus.bucket(subjects.ORDERS_BUCKET)
        await w.api.sql("UPDATE allocations SET assigned_at = now() - interval '1 minute'")
        await bucket.delete(key)
        stale = subjects.order_key("default", "1.gone.1")
        await bucket.put(stale, msgspec.json.encode(Order(allocation="1.gone.1", pool="default", desired="stop")))
        async with background(w.scheduler(QUICK).run()):
            entry = await eventually(lambda: bucket.get(key))
            order = msgspec.json.decode(entry.value, type=Order)
            assert order.desired == "run"
            await eventually(lambda: _is_absent(w, stale))
        assert await w.api.sql("SELECT count(*) FROM allocation_sessions WHERE revoked_at IS NULL") == [2]


async def test_order_that_cannot_be_written_again_ends_its_allocation_and_holds_up_nobody(world: World) -> None:
    async with world.scheduling() as w:
        notebook = await _launch_notebook(w, workspace=1)
        await w.launcher.running()
        await w.api.create()
        trial = (await w.launcher.running(2))[1]
        await w.api.sql("UPDATE tasks SET workspace_id = 77 WHERE task_type = 'NOTEBOOK'")
        await w.api.sql("UPDATE allocations SET assigned_at = now() - interval '1 minute'")
        bucket = w.bus.bucket(subjects.ORDERS_BUCKET)
        for allocation in (notebook, trial):
            await bucket.delete(subjects.order_key("default", allocation))
        async with background(w.scheduler(QUICK).run()):
            await eventually(lambda: bucket.get(subjects.order_key("default", trial)))
            await eventually(lambda: _is_in(w, notebook, "TERMINATED"))


async def test_standby_takes_over_when_the_lease_is_lost(world: World) -> None:
    active: list[str] = []

    def act(name: str) -> Any:
        async def run() -> None:
            active.append(name)
            try:
                await asyncio.Event().wait()
            finally:
                active.remove(name)

        return run

    quick = LeaseSettings(retry_s=0.05, check_s=0.05)
    asked: list[str] = []

    def url() -> str:
        asked.append(world.db.url)
        return asked[-1]

    async with background(hold_lease(url, act("a"), quick), hold_lease(url, act("b"), quick)) as (a, b):
        await eventually(lambda: active)
        await asyncio.sleep(0.2)
        assert len(active) == 1
        [first] = active
        # The connection dies; its process lives on, notices, and stops acting.
        await world.api.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN"
            " (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted)"
            " AND datname = current_database() AND application_name = 'resolute-scheduler-lease'"
        )
        await eventually(lambda: (len(active) == 1 and active != [first]) or a.done() or b.done())
        await eventually(lambda: len(asked) > 2)  # with the password of that moment
        assert not a.done()
        assert not b.done()
        (a if first == "b" else b).cancel()
        await eventually(lambda: active == [first], what="it takes the lease back")


async def test_one_loop_failing_ends_the_service(world: World) -> None:
    async def act() -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await hold_lease(lambda: world.db.url, act, LeaseSettings())


def _terms(process: ServiceProcess) -> int:
    return process.log().count("lease.won")


async def _nothing(order: Order) -> None:
    """Runs, and says nothing about it."""


async def _has(world: World, allocation: str, column: str) -> bool:
    return (await world.api.allocation(allocation))[column] is not None


async def _is_in(world: World, allocation: str, state: str) -> bool:
    return (await world.api.allocation(allocation))["state"] == state


async def _is_absent(world: World, key: str) -> bool:
    return await world.bus.bucket(subjects.ORDERS_BUCKET).get(key) is None
