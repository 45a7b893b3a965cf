"""Unfinished experiments whose stored configuration is not what today's would be, beside one that is healthy: each
ends, with the default of what is lacking or with a reason, and none holds up another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from libs.bus import BusSettings
from libs.db.tables.experiments import experiments
from libs.events.orders import Order
from tests.builders import insert_checkpoint
from tests.harness import ServiceProcess, eventually
from tests.integration.scheduler.test_survival import LR, SEARCH, _scheduler_process, expected_request_ids
from tests.integration.scheduler.world import World, background
from tests.scenarios.odd_configs import OddConfig, odd_configs

FILLED_IN = ("resources", "max_restarts", "preemption_timeout", "log_policies", "bind_mounts", "checkpoint_storage")
"""Parts of which a trial can do without what is stored."""
NEEDED = {"searcher": "invalid searcher configuration", "environment": "its configuration makes no task"}
"""Parts without which there is no trial, or no search; and what the owner reads."""


def _configs(usual: dict[str, Any]) -> Iterator[OddConfig]:
    yield OddConfig("nothing at all", {})
    for name in (*FILLED_IN, *NEEDED, "reproducibility", "hyperparameters"):
        yield OddConfig(f"no {name}", {key: value for key, value in usual.items() if key != name})
    yield from odd_configs(usual)


async def _store(world: World, odd: OddConfig, *, has_begun: bool) -> int:
    experiment = await world.api.create()
    async with world.db.transaction() as connection:
        changed = update(experiments).where(experiments.c.id == experiment).values(config=odd.config)
        await connection.execute(changed)
        [trial] = await world.api.trials(experiment)
        of_trial = {"experiment_id": experiment, "trial_id": trial["id"] if has_begun else None}
        for step in (1, 2):
            await insert_checkpoint(connection, steps_completed=step, **of_trial)
    if not has_begun:
        await world.api.forget_search(experiment)
    return experiment


async def _exit_at_once(world: World, order: Order) -> None:
    await world.launcher.see(order.allocation, "RUNNING")
    if order.spec is not None and order.spec.trial is not None:
        await world.api.tell_search(order.spec.trial.trial_id, "validation", {"metrics": {"loss": 0.5}})
    await world.launcher.exit(order.allocation)


@pytest.mark.slow
async def test_odd_configurations_hold_up_nobody(
    world: World, own_database_url: str, bus_settings: BusSettings, tmp_path: Path
) -> None:
    model = await world.api.create(activate=False)
    async with world.db.read() as connection:
        usual = (await connection.execute(select(experiments.c.config).where(experiments.c.id == model))).scalar_one()
    await world.api.kill(model)
    named = {
        await _store(world, odd, has_begun=has_begun): f"{odd.name}, {has_begun=}"
        for odd in _configs(usual)
        for has_begun in (False, True)
    }
    healthy = await world.api.create(searcher=SEARCH, hyperparameters=LR)
    world.launcher.on_run = lambda order: _exit_at_once(world, order)
    await world.launcher.offer()
    process = _scheduler_process(own_database_url, bus_settings, tmp_path)
    with process:
        async with background(world.launcher.run()):
            for _ in range(2):
                await eventually(lambda: process.log().count("lease.won") > 0)
                await asyncio.to_thread(process.restart)
            await world.api.ended(healthy, "COMPLETED")
            trials = await world.api.trials(healthy)
            assert sorted(trial["request_id"] for trial in trials) == sorted(expected_request_ids(8))
            assert {trial["state"] for trial in trials} == {"COMPLETED"}
            await eventually(lambda: _all_over(world, [*named, model]), timeout_s=60)
            assert await _trouble(world, process, named) == []
            await eventually(lambda: not world.launcher.orders)
    assert await world.api.sql("SELECT count(*) FROM allocations WHERE released_at IS NULL") == [0]


async def _all_over(world: World, idents: list[int]) -> bool:
    return all([await world.api.state(ident) in ("COMPLETED", "ERROR", "CANCELED") for ident in idents])


async def _trouble(world: World, process: ServiceProcess, named: dict[int, str]) -> list[str]:
    found = [line[:2000] for line in process.log().splitlines() if "loop.failed" in line]
    for ident, name in named.items():
        row = await world.api.experiment(ident)
        assert row is not None
        state, error = row["state"], row["error"] or ""
        lacks = name.partition(",")[0].removeprefix("no ")
        if lacks in FILLED_IN and state != "COMPLETED":
            found.append(f"{name}: {state}, {error}")
        if lacks in NEEDED and not (state == "ERROR" and NEEDED[lacks] in error):
            found.append(f"{name}: {state}, {error}")
        if state == "ERROR" and not error:
            found.append(f"{name}: no reason")
    return found
