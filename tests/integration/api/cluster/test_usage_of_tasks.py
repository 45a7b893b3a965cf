"""Reports of usage over each kind of task: tried again, across midnight, and still running; exactly what rows say."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from msgspec import Struct
from sqlalchemy import select

from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Connection, connect_database
from libs.db.tables.tasks import allocations
from services.scheduler.usage_days import UsageDays
from tests.builders import (
    insert_allocation,
    insert_checkpoint,
    insert_experiment,
    insert_metrics,
    insert_task,
    insert_trial,
)
from tests.harness.clock import FakeClock
from tests.harness.det import Det
from tests.integration.api.world import World

MIDNIGHT = datetime(2021, 1, 31, tzinfo=UTC)
"""After which the last day of a month begins."""
FIRST, LAST = MIDNIGHT - timedelta(days=1), MIDNIGHT + timedelta(days=2)
"""The three days in which everything happens: two of January, one of February."""


class Run(Struct, frozen=True):
    """One allocation: hours after the first midnight, None for not yet; the label of its experiment, if it has one."""

    task: str
    pool: str
    slots: int
    begin: float | None
    end: float | None
    owner: str = "admin"
    label: str = ""

    def seconds(self, after: datetime, before: datetime) -> float:
        """Slot seconds inside of the window; what runs still does so for ever."""
        if self.begin is None:
            return 0.0
        end = before if self.end is None else min(before, at(self.end))
        return max((end - max(after, at(self.begin))).total_seconds(), 0.0) * self.slots


RUNS = (
    # A trial that is tried again twice: the first attempt crosses midnight, the second one dies at once.
    Run("TRIAL", "gpus", 4, 22.5, 25.25, label="night"),
    Run("TRIAL", "gpus", 4, 25.5, 25.501, label="night"),
    Run("TRIAL", "gpus", 4, 26.0, None, label="night"),
    Run("NOTEBOOK", "gpus", 1, 23.0, 24.0, "determined"),
    Run("SHELL", "cpus", 2, 24.0, 48.0),
    # Over two midnights.
    Run("COMMAND", "gpus", 3, 20.0, 50.0, "determined"),
    Run("TENSORBOARD", "cpus", 0, 23.0, 60.0),
    Run("GENERIC", "cpus", 1, 47.75, None, "determined"),
    Run("CHECKPOINT_GC", "cpus", 0, 49.0, 49.1, label="night"),
    # Waits, and was withdrawn before it began.
    Run("COMMAND", "cpus", 5, None, None),
    Run("NOTEBOOK", "cpus", 5, None, 30.0),
)
TRIAL_RUNS = tuple(run for run in RUNS if run.task == "TRIAL")
USERS = {"admin": 1, "determined": 2}


def at(hours: float) -> datetime:
    return FIRST + timedelta(hours=hours)


def text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def rows_of(output: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(output)))


def by_key(pairs: Iterable[tuple[str, float]]) -> dict[str, Any]:
    """Sums, without those of nothing."""
    found: defaultdict[str, float] = defaultdict(float)
    for key, seconds in pairs:
        found[key] += seconds
    return {key: pytest.approx(seconds) for key, seconds in found.items() if seconds}


@pytest.fixture(scope="module")
def ran(world: World) -> dict[str, Run]:
    """By the ids of allocations. The days are summed up."""

    async def work(connection: Connection) -> dict[str, Run]:
        experiment = await insert_experiment(connection, config={"labels": ["night"]})
        trial = await insert_trial(connection, experiment_id=experiment)
        of_trial = await insert_task(connection, trial_id=trial, experiment_id=experiment)
        found: dict[str, Run] = {}
        for number, run in enumerate(RUNS, 1):
            of_experiment = {"experiment_id": experiment} if run.label else {}
            task = of_trial
            if run.task != "TRIAL":
                owner = USERS[run.owner]
                task = await insert_task(connection, task_type=run.task, owner_id=owner, **of_experiment)
            times = {
                "requested_at": at(run.begin or 20),
                "start_time": None if run.begin is None else at(run.begin),
                "end_time": None if run.end is None else at(run.end),
            }
            ident = await insert_allocation(
                connection, task_id=task, run=number, slots=run.slots, pool=run.pool, **times
            )
            found[ident] = run
        # One report in each attempt, and one in the minute between two of them.
        await insert_metrics(connection, trial_id=trial, step=1, values={}, group="training", end_time=at(23.5))
        await insert_metrics(connection, trial_id=trial, step=1, values={}, end_time=at(24.5))
        await insert_checkpoint(connection, task_id=of_trial, trial_id=trial, report_time=at(25.3))
        await insert_checkpoint(connection, task_id=of_trial, trial_id=trial, report_time=at(47.0))
        return found

    async def sum_up() -> None:
        async with connect_database(DatabaseSettings(url=world.database_url, pool_size=1)) as db:
            await UsageDays(db=db, clock=FakeClock(LAST + timedelta(minutes=2))).add_missing()

    found: dict[str, Run] = world.in_database(work)
    world.run_async(sum_up())
    return found


@pytest.mark.parametrize(("begin", "end"), [(0, 72), (24, 48), (22.75, 25.5), (48, 49), (1, 2)])
def test_allocations_are_all_tasks_as_their_rows_say(
    world: World, det: Det, ran: dict[str, Run], begin: float, end: float
) -> None:
    after, before = at(begin), at(end)
    shown = rows_of(det("resources", "allocations", text(after), text(before)).out)

    async def work(connection: Connection) -> Any:
        return (await connection.execute(select(allocations).where(allocations.c.allocation_id.in_(ran)))).all()

    rows = [row for row in world.in_database(work) if row.start_time is not None and row.start_time < before]
    rows = [row for row in rows if row.end_time is None or row.end_time > after]
    expected = {
        row.allocation_id: (ran[row.allocation_id].task, str(row.slots), text(row.start_time))
        for row in sorted(rows, key=lambda row: row.start_time)
    }
    assert {row["allocation_id"]: (row["task_type"], row["slots"], row["start_time"]) for row in shown} == expected
    for row in shown:
        run = ran[row["allocation_id"]]
        assert float(row["slot_hours"]) * 3600 == pytest.approx(run.seconds(after, before), abs=0.01), row
        assert bool(row["end_time"]) is (run.end is not None)
        assert (row["username"], row["resource_pool"]) == (run.owner, run.pool)
        assert bool(row["experiment_id"]) is bool(run.label)


@pytest.mark.parametrize(("begin", "end"), [(0, 72), (24, 48), (25.25, 25.5)])
def test_raw_is_what_trials_held_and_nothing_else(det: Det, ran: dict[str, Run], begin: float, end: float) -> None:
    window = (text(at(begin)), text(at(end)))
    as_csv = rows_of(det("resources", "raw", *window).out)
    as_json = det("resources", "raw", *window, "--json").json()["resourceEntries"]
    held = sum(run.seconds(at(begin), at(end)) for run in TRIAL_RUNS)
    assert sum(float(row["seconds"]) for row in as_csv) == pytest.approx(held)
    assert [(row["kind"], row["start_time"], row["end_time"], row["seconds"]) for row in as_csv] == [
        (entry["kind"], entry["startTime"], entry["endTime"], f"{entry['seconds']:f}") for entry in as_json
    ]
    assert {entry["slots"] for entry in as_json} <= {4}
    assert {tuple(entry["labels"]) for entry in as_json} <= {("night",)}
    starts = [entry["startTime"] for entry in as_json]
    assert starts == sorted(starts)


def test_each_attempt_of_a_trial_has_spans_of_its_own(det: Det, ran: dict[str, Run]) -> None:
    """A report ends a span of the attempt in which it came; one between two attempts ends none."""
    entries = det("resources", "raw", text(FIRST), text(LAST), "--json").json()["resourceEntries"]
    assert [(entry["kind"], entry["startTime"], entry["endTime"]) for entry in entries] == [
        ("training", text(at(22.5)), text(at(23.5))),
        ("validation", text(at(23.5)), text(at(24.5))),
        ("training", text(at(24.5)), text(at(25.25))),
        ("training", text(at(25.5)), "2021-01-31T01:30:03.600Z"),
        ("checkpointing", text(at(26)), text(at(47))),
        ("training", text(at(47)), text(LAST)),
    ]


def test_what_runs_still_ends_now(det: Det, ran: dict[str, Run]) -> None:
    until = datetime.now(UTC) + timedelta(days=1)
    shown = det("resources", "raw", text(LAST), text(until), "--json").json()["resourceEntries"]
    assert [entry["kind"] for entry in shown] == ["training"]
    now = datetime.now(UTC)
    ended = datetime.fromisoformat(shown[0]["endTime"])
    assert now - timedelta(hours=1) < ended <= now
    assert shown[0]["seconds"] == pytest.approx(4 * (ended - LAST).total_seconds(), abs=0.1)


@pytest.mark.parametrize("monthly", [False, True], ids=["by day", "by month"])
def test_days_and_months_are_the_sums_of_all_tasks(
    det: Det, admin: httpx.Client, ran: dict[str, Run], monthly: bool
) -> None:
    if monthly:
        periods = {"2021-01": (FIRST, MIDNIGHT + timedelta(days=1)), "2021-02": (MIDNIGHT + timedelta(days=1), LAST)}
    else:
        days = [FIRST + timedelta(days=number) for number in range(3)]
        periods = {day.strftime("%Y-%m-%d"): (day, day + timedelta(days=1)) for day in days}
    asked = [min(periods), max(periods), *(["--monthly"] if monthly else [])]
    entries = det("resources", "aggregated", *asked, "--json").json()["resourceEntries"]
    assert [entry["periodStart"] for entry in entries] == list(periods)
    table = rows_of(det("resources", "aggregated", *asked).out)
    for entry, window in zip(entries, periods.values(), strict=True):
        held = [(run, run.seconds(*window)) for run in RUNS]
        expected = {
            "username": by_key((run.owner, seconds) for run, seconds in held),
            "resource_pool": by_key((run.pool, seconds) for run, seconds in held),
            "experiment_label": by_key((run.label, seconds) for run, seconds in held if run.label),
            "total": by_key(("total", seconds) for _, seconds in held),
        }
        assert entry["seconds"] == expected["total"]["total"]
        assert entry["byUsername"] == expected["username"]
        assert entry["byResourcePool"] == expected["resource_pool"]
        assert entry["byExperimentLabel"] == expected["experiment_label"]
        rows: dict[str, dict[str, float]] = {kind: {} for kind in expected}
        for row in table:
            if row["date"] == entry["periodStart"] and float(row["seconds"]):
                rows[row["aggregation_type"]][row["aggregation_key"]] = float(row["seconds"])
        assert rows == expected
