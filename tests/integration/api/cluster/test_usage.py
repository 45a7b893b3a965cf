"""Reports of usage, as the unmodified client prints them: exactly what allocations held, also after they are gone."""

from __future__ import annotations

import asyncio
import csv
import io
import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from sqlalchemy import delete, select, update

from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Connection, connect_database
from libs.db.tables.cluster import usage_days
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import allocation_usage, tasks
from services.api.app import App
from services.api.queries.cluster import usage
from services.api.routes.cluster.usage import _allocations
from services.scheduler.usage_days import UsageDays
from tests.builders import (
    insert_allocation,
    insert_checkpoint,
    insert_experiment,
    insert_metrics,
    insert_project,
    insert_task,
    insert_trial,
    insert_workspace,
)
from tests.harness.clock import FakeClock
from tests.harness.det import Det
from tests.integration.api.world import World

DAY = datetime(2020, 3, 30, tzinfo=UTC)


def at(hours: float) -> datetime:
    return DAY + timedelta(hours=hours)


def text(hours: float) -> str:
    return at(hours).strftime("%Y-%m-%dT%H:%M:%SZ")


def rows_of(output: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(output)))


def sum_up(world: World, now: datetime) -> None:
    async def run() -> None:
        async with connect_database(DatabaseSettings(url=world.database_url, pool_size=1)) as db:
            await UsageDays(db=db, clock=FakeClock(now)).add_missing()

    world.run_async(run())


def days(world: World) -> dict[tuple[date, str, str], float]:
    async def work(connection: Connection) -> Any:
        return (await connection.execute(select(usage_days))).all()

    return {(row.day, row.aggregation_type, row.aggregation_key): row.seconds for row in world.in_database(work)}


@pytest.fixture(scope="module")
def used(world: World) -> dict[str, Any]:
    """A trial on four slots from 23:30 to 00:30, and a notebook on one from 01:00 to 02:00."""

    async def work(connection: Connection) -> dict[str, Any]:
        workspace = await insert_workspace(connection, name="lab")
        project = await insert_project(connection, workspace_id=workspace, name="work")
        config = {"labels": ["red, green", "back\\slash"]}
        experiment = await insert_experiment(connection, project_id=project, config=config)
        trial = await insert_trial(connection, experiment_id=experiment)
        of_trial = {"trial_id": trial, "experiment_id": experiment, "workspace_id": workspace}
        task = await insert_task(connection, **of_trial)
        times = {"requested_at": at(23), "start_time": at(23.5), "end_time": at(24.5)}
        allocation = await insert_allocation(connection, task_id=task, slots=4, pool="gpus", **times)
        await insert_metrics(connection, trial_id=trial, step=1, values={}, group="training", end_time=at(23.75))
        await insert_metrics(connection, trial_id=trial, step=1, values={}, end_time=at(24))
        await insert_checkpoint(connection, task_id=task, trial_id=trial, report_time=at(24.25))
        notebook = await insert_task(connection, task_type="NOTEBOOK", owner_id=2)
        times = {"requested_at": at(25), "start_time": at(25), "end_time": at(26)}
        await insert_allocation(connection, task_id=notebook, slots=1, pool="cpus", **times)
        await insert_allocation(connection, task_id=notebook, run=2, requested_at=at(25))
        return {"experiment": experiment, "allocation": allocation, "task": task, "notebook": f"{notebook}.1"}

    found: dict[str, Any] = world.in_database(work)
    return found


def test_raw_says_what_trials_did(det: Det, admin: httpx.Client, used: dict[str, Any]) -> None:
    found = rows_of(det("resources", "raw", text(0), text(48)).out)
    assert [(row["kind"], float(row["seconds"])) for row in found] == [
        ("training", 3600),
        ("validation", 3600),
        ("checkpointing", 3600),
        ("training", 3600),
    ]
    assert sum(float(row["seconds"]) for row in found) == 4 * 3600, "all that the allocation held"
    first = {**found[0], "labels": found[0]["labels"]}
    assert first == {
        "experiment_id": str(used["experiment"]),
        "kind": "training",
        "username": "admin",
        "labels": "red\\, green,back\\\\slash",
        "slots": "4",
        "start_time": "2020-03-30T23:30:00Z",
        "end_time": "2020-03-30T23:45:00Z",
        "seconds": "3600.000000",
    }
    inside = det("resources", "raw", text(23.5), text(24), "--json").json()["resourceEntries"]
    assert [(entry["kind"], entry["seconds"], entry["labels"]) for entry in inside] == [
        ("training", 3600, ["red, green", "back\\slash"]),
        ("validation", 3600, ["red, green", "back\\slash"]),
    ]
    assert (inside[0]["userId"], inside[0]["experimentId"]) == (1, used["experiment"])
    assert rows_of(det("resources", "raw", text(0), text(23)).out) == []
    camel = {"timestampAfter": text(0), "timestampBefore": text(48)}
    assert len(admin.get("/api/v1/resources/allocation/raw", params=camel).json()["resourceEntries"]) == 4


def test_allocations_are_listed_with_their_hours(det: Det, used: dict[str, Any]) -> None:
    trial, notebook = rows_of(det("resources", "allocations", text(24), text(48)).out)
    assert trial == {
        "allocation_id": used["allocation"],
        "task_type": "TRIAL",
        "username": "admin",
        "workspace_name": "lab",
        "experiment_id": str(used["experiment"]),
        "slots": "4",
        "start_time": "2020-03-30T23:30:00Z",
        "end_time": "2020-03-31T00:30:00Z",
        "imagepulling_time": "0.0",
        "slot_hours": "2.000000",
        "resource_pool": "gpus",
    }
    assert (notebook["allocation_id"], notebook["experiment_id"]) == (used["notebook"], "")
    assert (notebook["username"], notebook["slot_hours"]) == ("determined", "1.000000")


def test_days_are_summed_up_once_and_exactly(world: World, det: Det, used: dict[str, Any]) -> None:
    sum_up(world, at(24) + timedelta(seconds=30))
    assert days(world) == {}, "a minute after midnight at the earliest"
    sum_up(world, at(49))
    for _ in range(2):
        sum_up(world, at(72) + timedelta(minutes=2))
    first, second = date(2020, 3, 30), date(2020, 3, 31)
    assert days(world) == {
        (first, "total", "total"): 7200,
        (first, "username", "admin"): 7200,
        (first, "resource_pool", "gpus"): 7200,
        (first, "experiment_label", "red, green"): 7200,
        (first, "experiment_label", "back\\slash"): 7200,
        (first, "queued", "gpus"): 1800,
        (first, "queued", "total"): 1800,
        (second, "total", "total"): 10800,
        (second, "username", "admin"): 7200,
        (second, "username", "determined"): 3600,
        (second, "resource_pool", "gpus"): 7200,
        (second, "resource_pool", "cpus"): 3600,
        (second, "experiment_label", "red, green"): 7200,
        (second, "experiment_label", "back\\slash"): 7200,
        (second, "queued", "cpus"): 0,
        (second, "queued", "total"): 0,
        (date(2020, 4, 1), "total", "total"): 0,
    }
    shown = det("resources", "aggregated", "2020-03-30", "2020-04-01", "--json").json()["resourceEntries"]
    assert [(entry["periodStart"], entry["seconds"]) for entry in shown] == [
        ("2020-03-30", 7200),
        ("2020-03-31", 10800),
        ("2020-04-01", 0),
    ]
    assert shown[1]["byUsername"] == {"admin": 7200, "determined": 3600}
    assert shown[1]["byResourcePool"] == {"cpus": 3600, "gpus": 7200}
    assert shown[2]["byExperimentLabel"] == {}
    assert shown[0]["period"] == "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY"
    months = rows_of(det("resources", "aggregated", "2020-03", "2020-04", "--monthly").out)
    totals = {row["date"]: row["seconds"] for row in months if row["aggregation_type"] == "total"}
    assert totals == {"2020-03": "18000.000000", "2020-04": "0.000000"}
    assert not [row for row in months if row["aggregation_type"] == "queued"]


def test_what_was_used_outlives_what_used_it(world: World, det: Det, used: dict[str, Any]) -> None:
    async def work(connection: Connection) -> None:
        await connection.execute(update(tasks).where(tasks.c.task_id == used["task"]).values(workspace_id=1))
        await connection.execute(delete(tasks).where(tasks.c.task_id == used["task"]))
        await connection.execute(delete(experiments).where(experiments.c.id == used["experiment"]))

    before = rows_of(det("resources", "allocations", text(0), text(48)).out)
    world.in_database(work)
    assert rows_of(det("resources", "allocations", text(0), text(48)).out) == before
    raw = rows_of(det("resources", "raw", text(0), text(48)).out)
    assert sum(float(row["seconds"]) for row in raw) == 4 * 3600
    assert {row["labels"] for row in raw} == {"red\\, green,back\\\\slash"}


def test_days_hold_what_allocations_held(world: World, used: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Random allocations, some of which still run: days add up to what they held until midnight, and so does a list."""
    monkeypatch.setattr(usage, "PAGE", 7)
    seconds = random.Random(7)
    begin, midnight = datetime(2021, 1, 1, tzinfo=UTC), datetime(2021, 1, 8, tzinfo=UTC)

    async def work(connection: Connection) -> float:
        await connection.execute(delete(usage_days))
        await connection.execute(delete(allocation_usage))
        task = await insert_task(connection, task_type="COMMAND")
        held = 0.0
        for run in range(1, 60):
            start = begin + timedelta(seconds=seconds.randrange(6 * 86400))
            end = None if run % 9 == 0 else start + timedelta(seconds=seconds.randrange(3 * 86400))
            slots = seconds.randrange(9)
            times = {"requested_at": start, "start_time": start, "end_time": end}
            await insert_allocation(connection, task_id=task, run=run, slots=slots, pool=f"p{run % 3}", **times)
            held += slots * (min(end or midnight, midnight) - start).total_seconds()
        return held

    held = world.in_database(work)
    sum_up(world, midnight + timedelta(minutes=1))
    for kind in ("total", "resource_pool", "username"):
        assert sum(value for (_, found, _), value in days(world).items() if found == kind) == held

    window = usage.Window(after=begin, before=midnight, now=midnight)

    async def listed() -> list[Any]:
        found: list[Any] = []
        async with connect_database(DatabaseSettings(url=world.database_url, pool_size=1)) as db:
            async for rows in usage.allocation_pages(db, window):
                found += rows
            pieces = _allocations(cast(App, SimpleNamespace(db=db)), window)
            for _ in ("header", "first page"):
                await anext(pieces)
            # Whoever takes it as slowly as this one holds up nobody: there is one connection, and one turn.
            async with asyncio.timeout(5), db.searches, db.read() as connection:
                await connection.execute(select(1))
            rest = [piece async for piece in pieces]
            assert len(rest) > 5
        return found

    rows = world.run_async(listed())
    assert sum(window.slot_seconds(row) for row in rows) == held
    assert len({row.allocation_id for row in rows}) == len(rows) > 50


def test_long_labels_hold_up_no_day(world: World, used: dict[str, Any]) -> None:
    """Those from before there was a limit: an index has no room for them. Nor for one that is none."""
    day, letters = datetime(2022, 1, 1, tzinfo=UTC), random.Random(7)
    long = "".join(chr(letters.randrange(0x4E00, 0x9FFF)) for _ in range(5000))

    async def work(connection: Connection) -> None:
        await connection.execute(delete(usage_days))
        await connection.execute(delete(allocation_usage))
        labels = [long, f"{long[:256]} and more", "short", None]
        experiment = await insert_experiment(connection, config={"labels": labels})
        trial = await insert_trial(connection, experiment_id=experiment)
        task = await insert_task(connection, trial_id=trial, experiment_id=experiment)
        times = {"requested_at": day, "start_time": day, "end_time": day + timedelta(hours=1)}
        await insert_allocation(connection, task_id=task, slots=2, pool="gpus", **times)

    world.in_database(work)
    sum_up(world, day + timedelta(days=2, minutes=2))
    by_label = {
        key: seconds
        for (found, kind, key), seconds in days(world).items()
        if (found, kind) == (day.date(), "experiment_label")
    }
    assert by_label == {long[:256]: 7200, "short": 7200}


def test_only_what_ends_a_span_is_read(world: World, used: dict[str, Any]) -> None:
    """Of a trial that trains for days and validates now and then, a few rows of its many."""

    async def work(connection: Connection) -> tuple[str, list[Any]]:
        trial = await insert_trial(connection, experiment_id=await insert_experiment(connection))
        task = await insert_task(connection, trial_id=trial)
        times = {"requested_at": at(0), "start_time": at(0), "end_time": at(10)}
        allocation = await insert_allocation(connection, task_id=task, slots=1, **times)
        for step in range(1, 90):
            group = "validation" if step % 30 == 0 else "training"
            moment = at(step / 10)
            await insert_metrics(connection, trial_id=trial, step=step, values={}, group=group, end_time=moment)
        values = {"after": at(-1), "now": at(20), "allocations": [allocation]}
        return allocation, list(await connection.execute(usage._REPORTS, values))

    allocation, rows = world.in_database(work)
    expected = [(2.9, "training"), (3, "validation"), (5.9, "training"), (6, "validation"), (8.9, "training")]
    assert [tuple(row) for row in rows] == [(allocation, at(hours), kind) for hours, kind in expected]


def test_what_is_wrong_is_refused(det: Det, admin: httpx.Client, tmp_path: Path) -> None:
    window = {"timestamp_after": text(1), "timestamp_before": text(0)}
    daily = {"start_date": "2020-03-30", "end_date": "2020-03-31", "period": 1}
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("raw", {}, "missing parameter: timestamp_after"),
        ("raw", {"timestamp_after": text(0)}, "missing parameter: timestamp_before"),
        ("raw", {**window, "timestamp_after": "yesterday"}, "timestamp_after: must be a time as in"),
        ("raw", window, "timestamp_after: must not be after timestamp_before"),
        ("aggregated", {"end_date": "2020-03-31"}, "missing parameter: start_date"),
        ("aggregated", {**daily, "period": 0}, "period: must be"),
        ("aggregated", {**daily, "start_date": "2020-03"}, "start_date: must be a day"),
        ("aggregated", {**daily, "end_date": "2020-02-31"}, "end_date: must be a day"),
        ("aggregated", {**daily, "period": 2}, "start_date: must be a month"),
        ("aggregated", {**daily, "end_date": "2020-01-01"}, "start_date: must not be after end_date"),
    ]
    for path, params, says in refused:
        reply = admin.get(f"/api/v1/resources/allocation/{path}", params=params)
        assert (reply.status_code, says in reply.json()["error"]["error"]) == (400, True), (params, reply.text)
        plain = admin.get(f"/resources/allocation/{path}", params=params)
        assert (plain.status_code, says in plain.json()["message"]) == (400, True), (params, plain.text)
    assert "missing parameter: timestamp_after" in admin.get("/resources/allocation/allocations-csv").json()["message"]
    for path in ("raw", "allocations-csv", "aggregated"):
        stranger = admin.get(f"/resources/allocation/{path}", headers={"Authorization": "Bearer x"})
        assert stranger.status_code == 401
    for command in (("raw", "a", "b", "--json"), ("allocations", "a", "b"), ("aggregated", "a", "b")):
        ended = det.fails("resources", *command)
        assert "Traceback" not in ended.err, str(ended)
