"""Everything is brought over and counted, once, and nothing is written where it must not be."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from deploy.determined_import.importing import run_import
from deploy.determined_import.kinds.logs import LINES
from deploy.determined_import.refusal import ImportRefused
from deploy.determined_import.report import ImportReport
from libs.db.connecting.settings import APPLICATION, FORMER_APPLICATION, asyncpg_url
from tests.harness.determined.rows import CLUSTER_ID, DELETING, FINISHED, ODD, UNFINISHED
from tests.integration.api.conftest import run_async


async def imported(old_url: str, new_url: str, *, with_logs: bool = True) -> ImportReport:
    return await run_import(source_url=old_url, target_url=new_url, with_logs=with_logs, say=lambda _line: None)


async def rows_of(url: str, query: str, *arguments: Any) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(asyncpg_url(url))
    try:
        return [tuple(row) for row in await connection.fetch(query, *arguments)]
    finally:
        await connection.close()


@pytest.fixture(scope="module")
def report(old_url: str, database_url: str) -> ImportReport:
    """What the import came to whose rows are at ``database_url``; several tests look at them."""
    return run_async(imported(old_url, database_url))


def test_both_sides_are_counted_and_agree(report: ImportReport) -> None:
    by_kind = {each.kind: each for each in report.kinds}
    assert report.agrees, [each for each in report.kinds if not each.agrees]
    assert report.source == CLUSTER_ID
    assert (by_kind["users"].in_source, by_kind["users"].in_target) == (4, 4)
    assert [by_kind[kind].in_target for kind in ("users of SCIM", "OAuth clients")] == [1, 1]
    assert by_kind["pool bindings"].skipped == {"the pool was gone": 1}
    assert by_kind["metrics"].skipped == {"without values": 1}
    assert by_kind["log lines"].skipped == {"the task is gone": 1}
    assert [each.kind for each in report.kinds if not each.in_source] == ["log lines of old trials"]
    assert {each.table for each in report.left_behind} == {"cluster_id", "roles", "user_sessions"}
    assert [(token.owner, token.description) for token in report.access_tokens] == [("ada", "ci")]


async def test_what_had_not_ended_waits_or_has_ended_and_nothing_runs(report: ImportReport, database_url: str) -> None:
    states = await rows_of(database_url, "SELECT id, state, end_time IS NULL FROM experiments ORDER BY id")
    assert states == [
        (FINISHED, "COMPLETED", False),
        (UNFINISHED, "PAUSED", True),
        (ODD, "CANCELED", False),
        (DELETING, "DELETE_FAILED", False),
    ]
    assert report.unfinished.waiting == 1
    assert list(report.unfinished.ended) == [ODD]
    live = "SELECT count(*) FROM allocations WHERE state <> 'TERMINATED' OR released_at IS NULL OR NOT exit_processed"
    assert await rows_of(database_url, live) == [(0,)]
    open_tasks = "SELECT experiment_id FROM tasks WHERE end_time IS NULL ORDER BY 1"
    assert [ident for (ident,) in await rows_of(database_url, open_tasks)] == [UNFINISHED, UNFINISHED]


@pytest.mark.usefixtures("report")
async def test_a_search_goes_on_with_the_trials_that_it_had(database_url: str) -> None:
    trials = await rows_of(
        database_url, "SELECT id, state, run_id, local_id FROM trials WHERE experiment_id = $1 ORDER BY id", UNFINISHED
    )
    assert trials[:2] == [(1011, "COMPLETED", 1, 11), (1012, "PAUSED", 1, 12)]
    # The search had heard that the first was over, and wanted the third.
    assert [(ident > 1021, state, local) for ident, state, _, local in trials[2:]] == [(True, "PAUSED", 10)]
    requested = "SELECT snapshot ->> 'trials_requested' FROM searcher_snapshots WHERE experiment_id = $1"
    ((known,),) = await rows_of(database_url, requested, UNFINISHED)
    assert known == "3"


@pytest.mark.usefixtures("report")
async def test_generic_tasks_keep_their_trees_and_have_ended(database_url: str) -> None:
    query = """
        SELECT task_id, root_id, parent_id, state, no_pause, config -> 'entrypoint' ->> 0, end_time IS NULL
        FROM generic_tasks JOIN tasks USING (task_id) ORDER BY parent_id NULLS FIRST
    """
    assert await rows_of(database_url, query) == [
        ("root", "root", None, "CANCELED", True, "root", False),
        ("leaf", "root", "child", "COMPLETED", False, "leaf", False),
        ("child", "root", "root", "CANCELED", False, "child", False),
    ]


@pytest.mark.usefixtures("report")
async def test_ids_go_on_behind_those_that_were_imported(database_url: str) -> None:
    new = await rows_of(database_url, "INSERT INTO workspaces (name, owner_id) VALUES ('next', 1) RETURNING id")
    assert new == [(4,)]


@pytest.mark.usefixtures("report")
async def test_of_reports_for_one_step_the_last_counts(database_url: str) -> None:
    steps = await rows_of(database_url, "SELECT id, archived FROM metrics WHERE metric_group = 'training' ORDER BY id")
    assert steps == [(31, False), (32, True), (33, False)]


async def test_a_second_run_changes_nothing_and_says_the_same(
    old_url: str, report: ImportReport, database_url: str
) -> None:
    assert await imported(old_url, database_url) == report


async def test_lines_that_are_no_text_are_searched_with_their_bytes_escaped(old_url: str) -> None:
    lines = [
        b"",
        b"plain\n",
        b"a\\b",
        "gr\u00fc\u00df \U0001f600".encode(),
        b"\x7f",
        b"nul\0",
        b"\xff",
        b"\xc3",
        b"\\\xff",
    ]
    query = f"SELECT {LINES.columns['searchable']} FROM unnest($1::bytea[]) WITH ORDINALITY AS l(log, n) ORDER BY n"
    found = [searchable for (searchable,) in await rows_of(old_url, query, lines)]
    assert found == [None, None, None, None, None, "nul\\000", "\\377", "\\303", "\\\\\\377"]


async def test_logs_can_follow_later(old_url: str, new_url: str) -> None:
    before = await imported(old_url, new_url, with_logs=False)
    assert [each.table for each in before.left_behind if each.table == "task_logs"] == ["task_logs"]
    after = await imported(old_url, new_url, with_logs=True)
    assert after.agrees
    lines = await rows_of(new_url, "SELECT id, log, searchable FROM task_logs ORDER BY id")
    assert [ident for ident, _, _ in lines] == [1, 2, 3]
    assert [searchable is None for _, _, searchable in lines] == [True, False, True], "bytes that are no text"


async def test_an_installation_that_was_used_is_refused_and_left_as_it_was(old_url: str, new_url: str) -> None:
    await rows_of(new_url, "INSERT INTO users (username) VALUES ('somebody')")
    with pytest.raises(ImportRefused, match=r"used already: users \(3 rows\)"):
        await imported(old_url, new_url)
    assert await rows_of(new_url, "SELECT count(*) FROM imports") == [(0,)]


@pytest.mark.parametrize("name", [APPLICATION, FORMER_APPLICATION])
async def test_services_must_not_run_meanwhile(old_url: str, new_url: str, name: str) -> None:
    service = await asyncpg.connect(asyncpg_url(new_url), server_settings={"application_name": name})
    try:
        with pytest.raises(ImportRefused, match="stop them"):
            await imported(old_url, new_url)
    finally:
        await service.close()


async def test_a_database_with_another_schema_is_refused(new_url: str) -> None:
    with pytest.raises(ImportRefused, match=r"cannot be read as one of Determined 0\.38"):
        await imported(new_url, new_url)
