"""A backup of a running installation fills an empty one, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import msgspec
import pytest
from sqlalchemy import func, insert, text

from deploy.backup.archive import (
    BackupContent,
    BackupCounts,
    examine_archive,
    read_sections,
    write_archive,
)
from deploy.backup.catalog import read_tables
from deploy.backup.command import back_up, restore
from deploy.backup.database import LAYOUT
from deploy.operations.settings import OperationsSettings
from libs.bus import Bus, BusSettings, connect_bus
from libs.db.connecting.settings import DatabaseSettings, asyncpg_url
from libs.db.engine import Database, connect_database
from libs.db.migrate import upgrade
from libs.db.schema.found import revisions
from libs.db.services_role.role import provide_role
from libs.db.tables.experiments import experiments
from libs.db.tables.logs import task_logs
from libs.errors import FailedPrecondition, InvalidRequest
from libs.events.subjects import EVENTS_STREAM, LOGS_STREAM, ORDERS_BUCKET, event, logs, order_key
from libs.loglines.partitions import day_partition, day_partition_ddl
from tests import builders
from tests.harness import NatsServer, PostgresServer
from tests.harness.containers import ContainerPostgres
from tests.harness.services_role import ROLE, as_services
from tests.harness.streams import wipe
from tests.integration.api.conftest import run_async

DAY = date(2026, 1, 2)
STORAGE = {"type": "s3", "bucket": "b", "endpoint_url": "http://minio:9000"}
"""Migrations read it."""
LEVELS = """
WITH levels AS (
       INSERT INTO metric_levels (trial_id, metric_group, sealed_step) SELECT id, 'validation', 1 FROM trials
       RETURNING trial_id, metric_group)
INSERT INTO metric_chunks (trial_id, metric_group, name_key, chunk_no, first_step, last_step, extremes, points)
SELECT trial_id, metric_group, 'loss', 0, 1, 1, '', '' FROM levels
"""
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def database_urls(postgres_server: PostgresServer | ContainerPostgres, database_template: str) -> Iterator[list[str]]:
    """An installation's database, and one without any table, as services connect to them."""
    names = [f"{kind}_{uuid4().hex[:12]}" for kind in ("used", "empty")]
    postgres_server.execute(f"CREATE DATABASE {names[0]} TEMPLATE {database_template}")
    postgres_server.execute(f"CREATE DATABASE {names[1]}")
    run_async(provide_role(postgres_server.url(names[1]), ROLE))
    yield [as_services(postgres_server.url(name)) for name in names]
    for name in names:
        postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def fill(db: Database, bus: Bus) -> tuple[str, str]:
    """Something of everything; returns the keys of the order of a running allocation and of one that is over."""
    async with db.transaction() as connection:
        experiment = await builders.insert_experiment(connection, config={"checkpoint_storage": STORAGE})
        trial = await builders.insert_trial(connection, experiment_id=experiment)
        await builders.insert_metrics(connection, trial_id=trial, step=1, values={"loss": 0.5})
        job = await builders.insert_job(connection)
        task = await builders.insert_task(connection, job_id=job)
        runs = await builders.insert_allocation(connection, task_id=task, run=1, assigned_at=func.now())
        ended = await builders.insert_allocation(
            connection, task_id=task, run=2, assigned_at=func.now(), released_at=func.now()
        )
        await connection.execute(text(day_partition_ddl(DAY)))
        line = {"task_id": task, "log": b'tab\t, back\\slash, "quotes", NUL\0, \xff', "ingested_at": NOON}
        await connection.execute(insert(task_logs).values(line))
    keys = order_key("default", runs), order_key("default", ended)
    for key in keys:
        await bus.bucket(ORDERS_BUCKET).put(key, b"{}")
    await bus.bucket(ORDERS_BUCKET).put("default.withdrawn", b"{}")
    await bus.bucket(ORDERS_BUCKET).delete("default.withdrawn")
    await bus.publish(event("trial", 1, "changed"), b"{}", msg_id="m-1", headers={"ce-id": "m-1"})
    await bus.publish(logs(task), b"\x00\xff binary")
    return keys


async def content(url: str) -> dict[str, Any]:
    connection = await asyncpg.connect(asyncpg_url(url))
    try:
        tables = await connection.fetch(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p')"
            " AND relnamespace = 'public'::regnamespace ORDER BY 1"
        )
        found = {
            name: sorted(map(repr, await connection.fetch(f'SELECT * FROM "{name}"')))
            for name in (row["relname"] for row in tables)
        }
        found["sequences"] = [
            tuple(row) for row in await connection.fetch("SELECT sequencename, last_value FROM pg_sequences ORDER BY 1")
        ]
        triggers = "SELECT tgname, tgenabled FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2"
        found["triggers"] = [tuple(row) for row in await connection.fetch(triggers)]
        return found
    finally:
        await connection.close()


async def messages(bus: Bus, stream: str) -> list[tuple[str, bytes, str | None]]:
    state = (await bus.stream_states())[stream]
    found = [each async for each in bus.stored_messages(stream, last=state.last_sequence)]
    return [(each.subject, each.data, each.headers.get("ce-id")) for each in found]


async def test_new_installation_has_what_the_old_one_had(
    database_urls: list[str], bus_settings: BusSettings, own_nats_server: NatsServer, tmp_path: Path
) -> None:
    used, empty = database_urls
    file = tmp_path / "backup.tar.gz"
    new_bus = BusSettings(url=own_nats_server.url, logs_max_bytes=2**28)
    old = OperationsSettings(database=DatabaseSettings(url=used), bus=bus_settings)
    new = OperationsSettings(database=DatabaseSettings(url=empty), bus=new_bus)
    async with connect_database(old.database) as db, connect_bus(bus_settings) as bus:
        runs, ended = await fill(db, bus)
        async with db.transaction() as connection:
            await connection.execute(text(LEVELS))
        counts = await back_up(old, file)
        with pytest.raises(FailedPrecondition, match="services hold"):
            await restore(old, file)
        kept = {stream: await messages(bus, stream) for stream in (EVENTS_STREAM, LOGS_STREAM)}
    assert file.stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob("*.partial"))

    restored = await restore(new, file)
    assert restored.rows == counts.rows
    expected = await content(used)
    assert expected["metric_levels"]
    assert expected["metric_chunks"]
    assert await content(empty) == expected | {"metric_levels": [], "metric_chunks": []}, "they are made again"
    assert day_partition(DAY) in await content(empty)
    async with connect_bus(new_bus) as bus:
        assert {stream: await messages(bus, stream) for stream in kept} == kept
        assert await bus.bucket(ORDERS_BUCKET).keys() == [runs], f"{ended} would be started again"

    with pytest.raises(FailedPrecondition, match="the database is in use: there are rows in"):
        await restore(new, file)


@pytest.fixture(params=revisions())
def older_urls(
    request: pytest.FixtureRequest, postgres_server: PostgresServer | ContainerPostgres, database_template: str
) -> Iterator[tuple[str, list[str]]]:
    """A database of each revision, and new ones: without any table, and with the newest schema."""
    names = [f"{kind}_{uuid4().hex[:12]}" for kind in ("older", "empty", "newest")]
    for name in names[:2]:
        postgres_server.execute(f"CREATE DATABASE {name}")
        run_async(provide_role(postgres_server.url(name), ROLE))
    postgres_server.execute(f"CREATE DATABASE {names[2]} TEMPLATE {database_template}")
    older, *new = [as_services(postgres_server.url(name)) for name in names]
    run_async(upgrade(older, to=request.param))
    yield older, new
    for name in names:
        postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_backup_of_every_older_schema_is_restored_and_brought_to_the_newest(
    older_urls: tuple[str, list[str]], bus_settings: BusSettings, own_nats_server: NatsServer, tmp_path: Path
) -> None:
    older, (empty, newest) = older_urls
    file, unrecorded = tmp_path / "backup.tar.gz", tmp_path / "unrecorded.tar.gz"
    old = OperationsSettings(database=DatabaseSettings(url=older), bus=bus_settings)
    async with connect_database(old.database) as db, connect_bus(bus_settings) as bus:
        await fill(db, bus)
        counts = await back_up(old, file)
    await write_as_before_columns_were_recorded(older, file, unrecorded)

    restored = []
    for url, backup in ((empty, unrecorded), (newest, file)):
        await wipe(own_nats_server.url)
        new_bus = BusSettings(url=own_nats_server.url, logs_max_bytes=2**28)
        new = OperationsSettings(database=DatabaseSettings(url=url), bus=new_bus)
        assert (await restore(new, backup)).rows == counts.rows
        restored.append(await content(url))
    await upgrade(older)
    expected = await content(older)
    assert restored == [expected] * 2
    is_migrated = examine_archive(file)[0].schema < "0005"
    assert len(expected["storage_hosts"]) == is_migrated, "that migration reads the rows that were restored"


async def write_as_before_columns_were_recorded(url: str, file: Path, unrecorded: Path) -> None:
    """A backup of ``url`` as releases until 0005 wrote it: rows had columns in the order of ``libs.db.tables``."""
    connection = await asyncpg.connect(asyncpg_url(url))
    found = {table.name: table.columns for table in await read_tables(connection)}["experiments"]
    columns = [column.name for column in experiments.columns if column.name in found]
    rows = BytesIO()
    await connection.copy_from_table("experiments", columns=columns, output=rows)
    await connection.close()
    begin, counts = examine_archive(file)
    with write_archive(unrecorded, begin) as archive:
        for name, parts in read_sections(file):
            data = b"".join(parts)
            if name == LAYOUT:
                data = msgspec.json.encode({**msgspec.json.decode(data), "columns": {}})
            with archive.section(name) as section:
                section.write(rows.getvalue() if name == "database/experiments" else data)
        archive.end(counts)


async def test_backup_of_a_newer_release_is_refused(
    database_urls: list[str], bus_settings: BusSettings, tmp_path: Path
) -> None:
    _, empty = database_urls
    file = tmp_path / "backup.tar.gz"
    with write_archive(file, BackupContent(taken_at="", release="9.0", schema="9999")) as archive:
        archive.end(BackupCounts(messages={}, rows={}))
    with pytest.raises(FailedPrecondition, match=r"schema 9999 of a newer release, 9\.0; this one knows none beyond"):
        await restore(OperationsSettings(database=DatabaseSettings(url=empty), bus=bus_settings), file)
    assert (await content(empty))["sequences"] == []


async def test_file_that_is_not_whole_is_not_used(
    database_urls: list[str], bus_settings: BusSettings, tmp_path: Path
) -> None:
    used, empty = database_urls
    file = tmp_path / "backup.tar.gz"
    async with connect_bus(bus_settings):
        await back_up(OperationsSettings(database=DatabaseSettings(url=used), bus=bus_settings), file)
    new = OperationsSettings(database=DatabaseSettings(url=empty), bus=bus_settings)
    whole = file.read_bytes()
    for broken in (whole[: len(whole) * 2 // 3], b"", b"something else"):
        file.write_bytes(broken)
        with pytest.raises(InvalidRequest, match=r"cannot be read|is not whole|is no backup"):
            await restore(new, file)
    assert await content(empty) == {"sequences": [], "triggers": []}
