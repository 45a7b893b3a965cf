"""An import that is repeated brings what was added and changed there since, and writes over nothing of here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from deploy.determined_import.importing import run_import
from deploy.determined_import.kinds.compared import BOTH, HANGING, TAKEN
from deploy.determined_import.report import ImportReport, as_text
from libs.db.connecting.settings import asyncpg_url
from services.api.metrics.rows.back_fill import BackFill, BackFillPace
from services.api.metrics.rows.settling import settle
from tests.harness import NatsServer
from tests.harness.api import ApiProcess
from tests.harness.containers import ContainerNats
from tests.harness.determined.rows import (
    ADA,
    CHECKPOINT,
    FINISHED,
    FINISHED_TRIAL,
    LATEST,
    ODD,
    PASSWORD,
    TEAM,
    UNFINISHED,
    VISION,
    add_experiment,
)
from tests.integration.api.world import CLUSTER
from tests.integration.determined_import.conftest import make_old
from tests.scenarios.odd_configs import READS

MADE = "SELECT id FROM trials WHERE experiment_id = $1 AND id > 1021"
"""Trials that the import has made, because the search was about to ask for them."""
IN_ROWS = "SELECT summary_in_rows FROM trials WHERE id = $1"
ADDED, ADDED_TRIAL = 301, 3001


async def run(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(asyncpg_url(url))
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def rows_of(url: str, query: str, *arguments: Any) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(asyncpg_url(url))
    try:
        return [tuple(row) for row in await connection.fetch(query, *arguments)]
    finally:
        await connection.close()


async def pack_series(url: str) -> None:
    """Leave something of each series that charts were drawn from."""
    connection = await asyncpg.connect(asyncpg_url(url))
    await connection.execute(
        "INSERT INTO metric_levels (trial_id, metric_group, sealed_step)"
        " SELECT DISTINCT trial_id, metric_group, 0 FROM metrics WHERE kind <> 'PROFILING'"
    )
    await connection.close()
    assert await packed_series(url) > 0


async def packed_series(url: str) -> int:
    connection = await asyncpg.connect(asyncpg_url(url))
    count: int = await connection.fetchval("SELECT count(*) FROM metric_levels")
    await connection.close()
    return count


async def imported(old_url: str, new_url: str) -> ImportReport:
    return await run_import(source_url=old_url, target_url=new_url, with_logs=True, say=lambda _line: None)


@pytest.fixture
async def old(empty_database_url: str, tmp_path: Path) -> str:
    """An old installation that goes on."""
    await make_old(empty_database_url, tmp_path / "checkpoints")
    return empty_database_url


async def work_there(old: str, new: str, storage: Path) -> None:
    """What an old server does after the first import: people come and rename, the search goes on and ends."""
    connection = await asyncpg.connect(asyncpg_url(old))
    try:
        await add_experiment(connection, ADDED, ADDED_TRIAL, storage=storage)
    finally:
        await connection.close()
    made = (await rows_of(new, MADE, UNFINISHED))[0][0]
    (request,) = (await rows_of(new, "SELECT request_id FROM trials WHERE id = $1", made))[0]
    await run(
        old,
        "INSERT INTO users (id, username, active, remote) VALUES (11, 'new', true, false)",
        f"UPDATE users SET display_name = 'Ada L.', last_auth_at = now() WHERE id = {ADA}",
        f"UPDATE projects SET description = 'sharper', max_local_id = 13 WHERE id = {VISION}",
        f"UPDATE experiments SET state = 'COMPLETED', end_time = now(), progress = 1 WHERE id = {UNFINISHED}",
        "UPDATE runs SET state = 'COMPLETED', end_time = now(), total_batches = 9 WHERE id = 1012",
        # Under the very id that this system has given to it.
        "INSERT INTO runs (id, experiment_id, state, project_id, hparams, start_time, end_time, restart_id, local_id)"
        f" VALUES ({made}, {UNFINISHED}, 'COMPLETED', {VISION}, '{{}}', now(), now(), 1, 13)",
        f"INSERT INTO trials_v2 (not_trial_id, run_id, request_id, seed) VALUES ({made}, {made}, '{request}', 1)",
        "INSERT INTO raw_validations (id, trial_id, metrics, total_batches, end_time)"
        ' VALUES (71, 1012, \'{"validation_metrics": {"loss": 0.1}}\', 9, now())',
        f"UPDATE raw_validations SET archived = true WHERE id = 21 AND trial_id = {FINISHED_TRIAL}",
        "INSERT INTO task_logs (id, task_id, log) SELECT 9, task_id, 'more' FROM run_id_task_id WHERE run_id = 1012",
    )


async def put_summaries_into_rows(new: str) -> None:
    """As the api does when it is there for a while."""
    connection = await asyncpg.connect(asyncpg_url(new))
    try:
        await BackFill(BackFillPace(moment_s=600)).go_on(connection)
    finally:
        await connection.close()
    assert await rows_of(new, IN_ROWS, FINISHED_TRIAL) == [(True,)]


def paths() -> list[str]:
    """Everything that one looks at, of every object."""
    found = [
        "/api/v1/users",
        "/api/v1/groups?limit=100",
        f"/api/v1/workspaces/{TEAM}",
        f"/api/v1/workspaces/{TEAM}/projects",
        f"/api/v1/projects/{VISION}",
        "/api/v1/experiments",
        "/api/v1/models",
        "/api/v1/models/mnist/versions",
        "/api/v1/templates",
        "/api/v1/webhooks",
        "/api/v1/tasks",
    ]
    for experiment, trial, checkpoint in (
        (FINISHED, FINISHED_TRIAL, CHECKPOINT),
        (UNFINISHED, 1012, LATEST),
        (ADDED, ADDED_TRIAL, CHECKPOINT),
    ):
        names = {"experiment": experiment, "trial": trial, "checkpoint": checkpoint, "external": "none"}
        found += [
            call.path.format_map(names)
            for call in READS
            if "{task}" not in call.path and "{allocation}" not in call.path
        ]
    return found


def seen_by_clients(url: str, bus_url: str, directory: Path) -> dict[str, str]:
    cluster = directory.parent / "cluster.yaml"
    cluster.write_text(CLUSTER)
    with (
        ApiProcess(directory, database_url=url, bus_url=bus_url, settings={"cluster_config": str(cluster)}) as api,
        api.client("admin", PASSWORD) as admin,
    ):
        replies = {path: admin.get(path) for path in paths()}
        return {path: _stable(reply.text) for path, reply in replies.items()}


def _stable(text: str) -> str:
    """Without what is different at every request or start."""
    try:
        document = json.loads(text)
    except ValueError:
        return text
    for user in document.get("users", []) if isinstance(document, dict) else []:
        user.pop("lastAuthAt", None)
    for experiment in document.get("experiments", []) if isinstance(document, dict) else []:
        if experiment["id"] == ODD:  # which the import has ended, at the time when it came
            experiment["endTime"] = experiment["duration"] = None
    return json.dumps(document, sort_keys=True)


async def test_work_in_the_old_installation_comes_with_a_second_import(
    old: str, new_url: str, database_url: str, nats_server: NatsServer | ContainerNats, tmp_path: Path
) -> None:
    """As if everything had been imported at once: compared object by object, as clients see it."""
    assert (await imported(old, new_url)).agrees
    await put_summaries_into_rows(new_url)
    await pack_series(new_url)
    await work_there(old, new_url, tmp_path / "more")
    again = await imported(old, new_url)
    assert await packed_series(new_url) == 0
    assert again.agrees, as_text(again)
    assert not again.differs, as_text(again)
    by_kind = {each.kind: (each.in_source, each.in_target) for each in again.kinds}
    assert (by_kind["users"], by_kind["experiments"]) == ((5, 5), (5, 5))
    assert (await imported(old, database_url)).agrees
    (tmp_path / "apis").mkdir()
    twice = seen_by_clients(new_url, nats_server.url, tmp_path / "apis" / "twice")
    at_once = seen_by_clients(database_url, nats_server.url, tmp_path / "apis" / "at_once")
    for path, text in twice.items():
        assert text == at_once[path], path
    assert await rows_of(new_url, "SELECT state FROM experiments WHERE id = $1", UNFINISHED) == [("COMPLETED",)]
    assert await rows_of(new_url, "SELECT count(*) FROM task_logs WHERE id = 9") == [(1,)]


class CutOffError(Exception):
    """An import that goes no further."""


async def test_reports_of_a_repetition_that_was_cut_off_count_once(old: str, new_url: str) -> None:
    """Services run in between, and put a trial into rows whose summary has reports that are yet to come."""
    await imported(old, new_url)
    await put_summaries_into_rows(new_url)
    summary = (
        '{"validation_metrics": {"loss": {"count": 9, "last": 0.5, "max": 9, "min": 0.1, "sum": 9, "type": "number"}}}'
    )
    await run(
        old,
        f"UPDATE runs SET total_batches = 90, summary_metrics = '{summary}' WHERE id = {FINISHED_TRIAL}",
        "INSERT INTO raw_validations (id, trial_id, metrics, total_batches, end_time)"
        f' VALUES (90, {FINISHED_TRIAL}, \'{{"validation_metrics": {{"loss": 0.5}}}}\', 90, now())',
    )

    def say(line: str) -> None:
        if line.startswith("trials"):
            raise CutOffError

    with pytest.raises(CutOffError):
        await run_import(source_url=old, target_url=new_url, with_logs=True, say=say)
    await put_summaries_into_rows(new_url)
    await imported(old, new_url)
    assert await rows_of(new_url, IN_ROWS, FINISHED_TRIAL) == [(False,)]
    await put_summaries_into_rows(new_url)
    connection = await asyncpg.connect(asyncpg_url(new_url))
    await settle(connection, FINISHED_TRIAL)
    await connection.close()
    count = "SELECT summary_metrics #>> '{validation_metrics,loss,count}' FROM trials WHERE id = $1"
    assert await rows_of(new_url, count, FINISHED_TRIAL) == [("9",)]


async def test_what_was_changed_on_both_sides_stays_as_it_is_here_and_is_named(
    old: str, new_url: str, tmp_path: Path
) -> None:
    await imported(old, new_url)
    await run(
        new_url,
        f"UPDATE experiments SET state = 'ACTIVE' WHERE id = {UNFINISHED}",
        "UPDATE trials SET total_batches = 50 WHERE id = 1012",
        "INSERT INTO users (username) VALUES ('of here')",
        f"UPDATE workspaces SET name = 'Crew' WHERE id = {TEAM}",
        "UPDATE models SET description = 'of here' WHERE id = 8",
    )
    (taken,) = (await rows_of(new_url, "SELECT id FROM users WHERE username = 'of here'"))[0]
    await work_there(old, new_url, tmp_path / "more")
    await run(
        old,
        f"UPDATE users SET id = {taken} WHERE id = 11",
        f"UPDATE workspaces SET name = 'Group' WHERE id = {TEAM}",
        "DELETE FROM workspace_pins",
    )
    before = await rows_of(new_url, "SELECT * FROM trials WHERE experiment_id = $1 ORDER BY id", UNFINISHED)
    again = await imported(old, new_url)
    named = {each.kind: dict(each.named) for each in again.kinds if each.named}
    assert named["users"] == {TAKEN: [f"({taken})"]}
    assert named["workspaces"] == {BOTH: [f"({TEAM})"]}
    assert named["experiments"] == {HANGING: [f"({UNFINISHED})"]}
    assert {each.kind: len(each.gone) for each in again.kinds if each.gone} == {"workspace pins": 1}
    assert again.differs
    assert again.agrees, as_text(again)
    assert await rows_of(new_url, "SELECT * FROM trials WHERE experiment_id = $1 ORDER BY id", UNFINISHED) == before
    assert await rows_of(new_url, "SELECT count(*) FROM metrics WHERE id = 71") == [(0,)]
    assert await rows_of(new_url, "SELECT count(*) FROM experiments WHERE id = $1", ADDED) == [(1,)]
    assert await rows_of(new_url, "SELECT description FROM models") == [("of here",)], "changed here only"
    assert await rows_of(new_url, "SELECT display_name FROM users WHERE id = $1", ADA) == [("Ada L.",)]


async def test_what_an_earlier_release_has_imported_is_compared_as_it_is(old: str, new_url: str) -> None:
    """It has recorded nothing: rows that are the same are taken over, others are left as they are."""
    await imported(old, new_url)
    await run(new_url, "DELETE FROM import_rows", "UPDATE models SET description = 'of here' WHERE id = 8")
    again = await imported(old, new_url)
    assert [each.kind for each in again.kinds if "models" in each.kind and each.named] == ["models"]
    assert await rows_of(new_url, "SELECT description FROM models") == [("of here",)]
    assert (await rows_of(new_url, "SELECT count(*) > 20 FROM import_rows")) == [(True,)]


async def test_storage_that_comes_along_may_be_at_a_private_address(old: str, new_url: str) -> None:
    section = {"type": "s3", "bucket": "b", "endpoint_url": "http://Minio.Old:9000"}
    await run(old, f"UPDATE workspaces SET checkpoint_storage_config = '{json.dumps(section)}' WHERE id = {TEAM}")
    await imported(old, new_url)
    hosts = "SELECT host, port FROM storage_hosts"
    assert await rows_of(new_url, hosts) == [("minio.old", 9000)]
    here = {**section, "endpoint_url": "http://10.0.0.1"}
    await run(new_url, f"UPDATE workspaces SET checkpoint_storage = '{json.dumps(here)}' WHERE id = {TEAM}")
    await imported(old, new_url)
    assert await rows_of(new_url, hosts) == [("minio.old", 9000)]
