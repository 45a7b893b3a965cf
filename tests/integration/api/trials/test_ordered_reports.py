"""Reports of a trial as clients read them one after the other: in one order, of which the first cost what they are."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import asyncpg
import pytest

from libs.db.connecting.settings import asyncpg_url
from libs.db.engine import Database
from services.api.queries.trials import metrics as trial_metrics
from services.api.queries.trials.ordered_reports import ordered_reports
from tests.bench.reading.statements import statements_of
from tests.harness.seeds import chance
from tests.integration.api.tasks.service import Run, new_run

PLAIN: Final = """
SELECT id FROM metrics WHERE trial_id = $1 AND NOT archived AND ($2 = '' OR metric_group = $2)
 ORDER BY trial_run_id, total_batches, id
"""
INSERT: Final = """
INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics, archived)
SELECT $1, run, metric_group, kind, step, now(), '{"avg_metrics": {"loss": 1}}', false
  FROM unnest($2::int[], $3::text[], $4::text[], $5::int[]) AS new (run, metric_group, kind, step)
"""
MANY: Final = 20_000
FILL: Final = """
INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
SELECT $1, 1, metric_group, upper(metric_group), step, now(), '{}'
  FROM generate_series(1, $2::int) step, (VALUES ('training'), ('validation')) each (metric_group)
"""
OTHERS: Final = """
INSERT INTO metrics (trial_id, trial_run_id, metric_group, kind, total_batches, end_time, metrics)
SELECT 1000000 + 3000 * $1::bigint + n % 2003, 1, 'validation', 'VALIDATION', n, now(), '{}'
  FROM generate_series(1, 20000) n
"""
TAKE_BACK: Final = "UPDATE metrics SET archived = true WHERE trial_id = $1 AND total_batches = ANY($2::int[])"


@pytest.fixture
async def driver(database_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(asyncpg_url(database_url))
    yield connection
    await connection.close()


async def ids_read(db: Database, trial_id: int, group: str, at_once: int) -> list[list[int]]:
    return [[row["id"] for row in page] async for page in ordered_reports(db, trial_id, group, at_once=at_once)]


def a_history() -> list[tuple[int, str, str, int | None]]:
    """Run, group, kind and step of what is left of some runs, each of which went on where the one before was then."""
    names = ["training", "validation", *(f"mine{n}" for n in range(chance().randrange(40)))]
    found: list[tuple[int, str, str, int | None]] = []
    begin = 0
    for run in range(1, 5):
        end = begin + chance().randrange(40)
        for name in names:
            # Where a run begins, the one before has left what it had trained up to there.
            steps = range(begin + 1, end + 1) if name == "training" else range(begin, end)
            kind = name.upper() if name in ("training", "validation") else "GENERIC"
            found += [(run, name, kind, step) for step in steps if chance().random() < 0.7]
        # Profiling of Determined, which an import brings, has steps.
        steps_of_profiling = [None] * chance().randrange(30) + [begin] * chance().randrange(3)
        found += [(run, chance().choice(["gpu", "cpu"]), "PROFILING", step) for step in steps_of_profiling]
        begin = end
    chance().shuffle(found)
    return found


@pytest.mark.parametrize("group", ["", "training", "gpu", "none"])
async def test_reports_are_in_the_order_of_runs_steps_and_ids(
    db: Database, driver: asyncpg.Connection, group: str
) -> None:
    for at_once in (1, 7, 64, 1000):
        run = await new_run(db)
        await driver.execute(INSERT, run.trial, *map(list, zip(*a_history(), strict=True)))
        expected = [ident for (ident,) in await driver.fetch(PLAIN, run.trial, group)]
        pages = await ids_read(db, run.trial, group, at_once)
        assert [len(page) for page in pages[:-1]] == [at_once] * (len(pages) - 1)
        assert [ident for page in pages for ident in page] == expected


async def test_what_comes_or_goes_meanwhile_shifts_nothing(db: Database, driver: asyncpg.Connection) -> None:
    run = await new_run(db)
    await driver.execute(FILL, run.trial, 30)
    pages = ordered_reports(db, run.trial, "training", at_once=10)
    first = await anext(pages)
    await driver.execute(TAKE_BACK, run.trial, [3, 25])
    await driver.execute(INSERT, run.trial, [2, 2], ["training"] * 2, ["TRAINING"] * 2, [25, 31])
    others = [row async for page in pages for row in page]
    assert [row["total_batches"] for row in first] == [*range(1, 11)]
    assert [row["total_batches"] for row in others] == [step for step in range(11, 31) if step != 25]


@pytest.mark.parametrize("group", ["training", ""])
async def test_the_first_reports_cost_what_they_are(
    db: Database, database_url: str, driver: asyncpg.Connection, group: str
) -> None:
    run: Run = await new_run(db)
    # Most trials have reported little, and what they have is all over the table.
    await driver.execute(OTHERS, run.trial)
    await driver.execute(FILL, run.trial, MANY)
    await driver.execute("ANALYZE metrics")

    async def read_first(db: Database) -> object:
        pages = trial_metrics.read_metrics(db, [run.trial], group=group)
        shown = [await anext(pages), await anext(pages)]
        await pages.aclose()  # type: ignore[attr-defined]
        return shown

    statements = await statements_of(asyncpg_url(database_url), read_first)
    assert statements
    for statement in statements:
        rows = await driver.fetch(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.sql}", *statement.parameters)
        assert _rows_of_reports(json.loads(rows[0][0])[0]["Plan"]) < 5 * trial_metrics.PAGE_ROWS, statement.sql


def _rows_of_reports(plan: dict[str, Any]) -> float:
    own: float = plan["Actual Rows"] * plan["Actual Loops"] if "metrics" in plan.get("Relation Name", "") else 0
    own += plan.get("Rows Removed by Filter", 0)
    return own + sum(map(_rows_of_reports, plan.get("Plans", ())))
