"""Rows of the old database that contradict each other, or that Python could not hold: they are imported or named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import asyncpg
import pytest

from deploy.determined_import.importing import run_import
from deploy.determined_import.refusal import ImportRefused
from deploy.determined_import.report import ImportReport
from libs.db.connecting.settings import asyncpg_url
from tests.harness.determined.rows import FINISHED_TRIAL, UNFINISHED
from tests.integration.determined_import.conftest import make_old

SECRET = "the hash of a password"


async def execute(url: str, *statements: str) -> list[Any]:
    """The rows of the last statement."""
    connection = await asyncpg.connect(asyncpg_url(url))
    try:
        for statement in statements[:-1]:
            await connection.execute(statement)
        return [tuple(row) for row in await connection.fetch(statements[-1])]
    finally:
        await connection.close()


@pytest.fixture
async def odd_url(empty_database_url: str, tmp_path: Path) -> str:
    await make_old(empty_database_url, tmp_path / "checkpoints")
    return empty_database_url


async def imported(old: str, new: str) -> ImportReport:
    return await run_import(source_url=old, target_url=new, with_logs=False, say=lambda _line: None)


async def test_moments_stay_within_the_years_of_python(odd_url: str, new_url: str) -> None:
    await execute(
        odd_url,
        "UPDATE runs SET start_time = '4713-01-01 BC', end_time = '20000-01-01' WHERE end_time IS NOT NULL",
        "UPDATE raw_validations SET end_time = '0044-03-15 BC'",
        "UPDATE users SET last_auth_at = 'infinity'",
    )
    report = await imported(odd_url, new_url)
    assert report.agrees
    found = await execute(
        new_url,
        "SELECT min(start_time), max(end_time), (SELECT min(end_time) FROM metrics),"
        " (SELECT max(last_auth_at) FROM users) FROM trials",
    )
    assert [moment.year for moment in found[0]] == [1, 9999, 1, 9999]


async def test_an_experiment_that_cannot_be_searched_says_why(odd_url: str, new_url: str) -> None:
    await execute(odd_url, f"UPDATE experiments SET config = config - 'reproducibility' WHERE id = {UNFINISHED}")
    report = await imported(odd_url, new_url)
    assert report.unfinished.ended[UNFINISHED].endswith("its configuration has no reproducibility")


async def test_a_run_without_its_experiment_is_left_out_until_it_is_there(odd_url: str, new_url: str) -> None:
    await execute(odd_url, f"UPDATE runs SET experiment_id = 9999 WHERE id = {FINISHED_TRIAL}")
    report = await imported(odd_url, new_url)
    skipped = {each.kind: each.skipped for each in report.kinds if each.skipped}
    assert skipped["trials"] == {"the experiment is missing": 1}
    assert skipped["tasks of trials"] == skipped["trial sources"] == {"the trial is missing": 1}
    assert report.agrees


async def test_only_the_last_task_of_a_trial_that_was_continued_goes_on(odd_url: str, new_url: str) -> None:
    await execute(
        odd_url,
        "INSERT INTO tasks (task_id, task_type, start_time, job_id)"
        " SELECT 'again', 'TRIAL', t.start_time + interval '1 day', t.job_id FROM tasks t"
        " JOIN run_id_task_id x ON x.task_id = t.task_id WHERE x.run_id = 1012",
        "INSERT INTO run_id_task_id (run_id, task_id) VALUES (1012, 'again')",
        "UPDATE tasks SET end_time = start_time + interval '1 hour' WHERE task_id IN"
        " (SELECT task_id FROM run_id_task_id WHERE run_id = 1012 AND task_id <> 'again')",
    )
    assert (await imported(odd_url, new_url)).agrees
    ends = await execute(
        new_url,
        "SELECT t.end_time - t.start_time FROM trial_tasks x JOIN tasks t USING (task_id) WHERE x.trial_id = 1012"
        " ORDER BY x.position",
    )
    assert [end and end.total_seconds() for (end,) in ends] == [3600, None]


async def test_a_refusal_names_the_column_and_never_prints_a_row(odd_url: str, new_url: str) -> None:
    await execute(odd_url, f"UPDATE users SET password_hash = '{SECRET}'")
    await execute(new_url, f"ALTER TABLE users ADD CHECK (password_hash <> '{SECRET}')")
    with pytest.raises(ImportRefused, match=r"users behind the first could not be imported.*table users") as refused:
        await imported(odd_url, new_url)
    assert SECRET not in str(refused.value)
