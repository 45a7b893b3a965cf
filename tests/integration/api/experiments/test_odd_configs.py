"""Experiments whose stored configuration is not what today's would be: all calls answer, and lists show them."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from tests.integration.api.experiments.conftest import CONFIG, Api
from tests.integration.api.experiments.rows import START
from tests.scenarios.odd_configs import CHANGES, LISTINGS, OVERVIEWS, READS, Call, OddConfig, odd_configs

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def writer(api: Api) -> AsyncIterator[None]:
    """Writes the metrics that are reported."""
    running = asyncio.create_task(api.app.metrics_writer.run())
    yield
    running.cancel()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def usual(api: Api) -> dict[str, Any]:
    config: dict[str, Any] = (await api.rows.experiment(await api.create(CONFIG))).config
    return config


async def _objects(api: Api, odd: OddConfig) -> dict[str, Any]:
    """An experiment with this configuration, and everything that belongs to it, by the names of the table."""
    experiment = await api.create_empty(CONFIG)
    trial = await api.rows.trial(experiment, external_id=f"outside-{experiment}")
    row = await api.rows.experiment(experiment)
    task = (await api.ok("GET", f"/api/v1/trials/{trial}"))["trial"]["taskId"]
    for step in (1, 2):
        await api.rows.metric(trial, step, "validation", {"loss": 0.5})
        await api.rows.metric(trial, step, "training", {"loss": 0.5})
    await api.rows.allocation(trial, "RUNNING", assigned_at=START, start_time=START)
    checkpoint = await api.rows.checkpoint(experiment, trial, 2, task_id=task)
    await api.rows.set_experiment(experiment, config=odd.config, external_id=f"outside-{experiment}")
    return {
        "experiment": experiment,
        "trial": trial,
        "external": f"outside-{experiment}",
        "task": task,
        "allocation": f"{task}.1",
        "checkpoint": checkpoint,
        "job": row.job_id,
        "uuid": str(uuid4()),
        "usual_config": CONFIG,
        "stored_config": json.dumps(odd.config),
        "stored_object": odd.config,
    }


def _filled(value: Any, objects: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(each, objects) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, objects) for each in value]
    alone = value[1:-1] if isinstance(value, str) and value.startswith("{") else ""
    return objects.get(alone, value)


async def _trouble(api: Api, call: Call, objects: dict[str, Any]) -> str | None:
    experiment, trial = objects["experiment"], objects["trial"]
    ended = None if call.state in ("ACTIVE", "PAUSED") else START
    await api.rows.set_experiment(experiment, state=call.state, end_time=ended, archived=False)
    await api.rows.set_trial(trial, state=call.state, end_time=ended)
    path = call.path.format_map(objects)
    reply = await api.admin.request(call.method, path, json=_filled(call.body, objects))
    is_broken = reply.status_code >= 500 or b"internal server error" in reply.content
    return f"{call.method} {path} {call.body}: {reply.status_code} {reply.text}" if is_broken else None


async def _walk(api: Api, configs: Iterable[OddConfig]) -> list[str]:
    """What goes wrong on the way through all calls with each configuration."""
    trouble = []
    for odd in configs:
        objects = await _objects(api, odd)
        for call in (*READS, *CHANGES):
            if (found := await _trouble(api, call, objects)) is not None:
                trouble.append(f"{odd.name}: {found}")
    return trouble


async def test_no_call_fails_because_nothing_is_stored(api: Api) -> None:
    assert await _walk(api, [OddConfig("nothing at all", {})]) == []


@pytest.mark.slow
async def test_no_call_fails_because_of_what_is_stored(api: Api, usual: dict[str, Any]) -> None:
    assert await _walk(api, odd_configs(usual)) == []


async def test_lists_show_them_with_all_others(api: Api, usual: dict[str, Any]) -> None:
    made = [(await _objects(api, odd))["experiment"] for odd in odd_configs(usual)]
    made.append((await _objects(api, OddConfig("usual", usual)))["experiment"])
    for path in OVERVIEWS:
        reply = await api.admin.get(path)
        assert reply.status_code == 200, f"{path}: {reply.text}"
    for listing in LISTINGS:
        reply = await api.admin.request(listing.method, listing.path, json=listing.body)
        assert reply.status_code == 200, f"{listing}: {reply.text}"
        elements = reply.json()[listing.key]
        shown = {int(functools.reduce(dict.__getitem__, listing.ident.split("."), element)) for element in elements}
        assert shown >= set(made), listing
