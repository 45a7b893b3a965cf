"""Reports with many values are folded in pieces, and everything else that the process does goes on meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest

from libs.db.engine import Database, driver_connection
from libs.db.tables.metrics import NOTHING_FOLDED
from libs.db.tables.trials import trials
from services.api.metrics.locked_path import store_locked
from services.api.metrics.rows import folding, tail
from services.api.metrics.rows.settling import settle
from services.api.metrics.rows.summary_rows import GroupRow, fold_tail
from services.api.metrics.rows.tail import read_piece
from tests.integration.api.metrics.reporting import a_report
from tests.integration.api.tasks.service import new_run, row_of

STEPS = range(1, 8)


async def store(db: Database, trial: int, step: int, avg: dict[str, Any], *, run: int = 1, to_rows: bool) -> None:
    async with db.read() as connection:
        driver = await driver_connection(connection)
        async with driver.transaction():
            report = a_report(trial, step, run=run, avg=avg)
            outcome = await store_locked(driver, [report], with_experiments=False, to_rows=to_rows)
    assert outcome.errors == [None]


async def test_piece_has_as_many_reports_as_its_bytes_allow(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    trial, chance = (await new_run(db)).trial, Random(1)
    for step in STEPS:  # a report of about 40,000 bytes, in digits that do not compress
        await store(db, trial, step, {f"name.{n}": chance.random() for n in range(2_000)}, to_rows=True)

    async def read(after: int) -> tuple[list[int], bool]:
        async with db.read() as connection:
            piece = await read_piece(await driver_connection(connection), trial, "training", after=after)
        return [step for step, _ in piece.reports], piece.is_last

    assert await read(NOTHING_FOLDED) == ([*STEPS], True)
    monkeypatch.setattr(tail, "_BYTES_AT_ONCE", 100_000)
    steps, is_last = await read(NOTHING_FOLDED)
    assert 1 < len(steps) < len(STEPS)
    assert not is_last
    monkeypatch.setattr(tail, "_BYTES_AT_ONCE", 1)
    assert await read(NOTHING_FOLDED) == ([1], False)
    assert await read(6) == ([7], True)
    assert await read(7) == ([], True)
    monkeypatch.setattr(tail, "_REPORTS_AT_ONCE", 1)
    assert await read(6) == ([7], False), "there may be more"


@pytest.mark.parametrize(("bound", "transactions"), [("REPORTS_AT_ONCE", 4), ("VALUES_AT_ONCE", 2)])
async def test_reports_and_values_of_one_transaction_are_bounded(
    db: Database, monkeypatch: pytest.MonkeyPatch, bound: str, transactions: int
) -> None:
    """Of four reports with five values each."""
    trial = (await new_run(db)).trial
    for step in range(1, 5):
        await store(db, trial, step, {f"name.{n}": step for n in range(5)}, to_rows=True)
    monkeypatch.setattr(tail, "_REPORTS_AT_ONCE", 1)
    monkeypatch.setattr(folding, bound, {"REPORTS_AT_ONCE": 1, "VALUES_AT_ONCE": 10}[bound])
    took: list[int] = []
    fold_sealed = folding.fold_sealed

    async def counted(driver: Any, sealed: GroupRow) -> int:
        took.append(await fold_sealed(driver, sealed))
        return took[-1]

    monkeypatch.setattr(folding, "fold_sealed", counted)
    async with db.read() as connection:
        assert await folding.fold_trial(await driver_connection(connection), trial) == 4
    assert took == [4 // transactions] * transactions


@pytest.mark.parametrize("to_rows", [True, False])
@pytest.mark.parametrize("bound", ["_BYTES_AT_ONCE", "_REPORTS_AT_ONCE", "VALUES_AT_ONCE"])
async def test_pieces_make_the_same_summary(
    db: Database, monkeypatch: pytest.MonkeyPatch, bound: str, to_rows: bool
) -> None:
    trial = (await new_run(db)).trial
    monkeypatch.setattr(tail, bound, 2)
    for step in STEPS:
        await store(
            db, trial, step, {"a": step, "b": -step, "c": "x"} | ({"d": 0.5} if step < 3 else {}), to_rows=to_rows
        )
    async with db.read() as connection:
        driver = await driver_connection(connection)
        await driver.execute("UPDATE trials SET run_id = 2 WHERE id = $1", trial)
        await store(db, trial, 6, {"a": 6}, run=2, to_rows=to_rows)  # all is made anew, without 6 and 7
        await settle(driver, trial)
    assert (await row_of(db, trials, id=trial)).summary_metrics == {
        "avg_metrics": {
            "a": {"type": "number", "count": 6, "sum": 21, "min": 1, "max": 6, "mean": 3.5, "last": 6},
            "b": {"type": "number", "count": 5, "sum": -15, "min": -5, "max": -1, "mean": -3},
            "c": {"type": "string"},
            "d": {"type": "number", "count": 2, "sum": 1, "min": 0.5, "max": 0.5, "mean": 0.5},
        }
    }


class Instant:
    """A database that answers without giving anybody else a turn."""

    def __init__(self, reports: int, values: int) -> None:
        document = json.dumps({f"name.{n}": n for n in range(values)})
        self._rows = [(step, document, reports) for step in range(reports)]

    async def fetch(self, statement: str, *arguments: Any) -> list[Any]:
        return self._rows if statement == tail.sql.TAIL else []

    async def execute(self, statement: str, *arguments: Any) -> str:
        return ""


@pytest.mark.parametrize(("reports", "values"), [(1, 100), (50, 2)])
async def test_others_have_their_turn_while_reports_are_folded(
    monkeypatch: pytest.MonkeyPatch, reports: int, values: int
) -> None:
    monkeypatch.setattr(tail, "VALUES_AT_ONCE", 10)
    assert await _turns_during(lambda: fold_tail(Instant(reports, values), GroupRow(1, "training", 1, 1))) >= 10


async def _turns_during(work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await work()
    counting.cancel()
    return turns
