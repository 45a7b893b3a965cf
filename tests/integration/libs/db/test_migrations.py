"""The migrations lead to the tables that the code believes in."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from msgspec import structs
from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from libs.db.connecting.settings import DatabaseSettings
from libs.db.migrate import provide_schema, upgrade
from libs.db.schema.found import FORMER_LOCK, LAST_OF_FORMER_LOCK, schema_of
from libs.db.tables import metadata
from libs.errors import Unavailable


def _is_ours(_object: object, name: str | None, kind: str, _reflected: bool, _compared: object) -> bool:
    """Partitions belong to their table, and Alembic's own table to Alembic."""
    partition = bool(name) and kind == "table" and (str(name).startswith(("metrics_p", "task_logs_d")))
    return not partition and name != "alembic_version"


def _differences(connection: Connection) -> list[Any]:
    options = {"include_object": _is_ours, "compare_type": True, "compare_server_default": False}
    return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))


async def test_migrated_database_has_the_tables_of_the_code(database_url: str) -> None:
    engine = create_async_engine(database_url, poolclass=NullPool)
    async with engine.connect() as connection:
        assert await connection.run_sync(_differences) == []
        sequences = await connection.run_sync(lambda sync: inspect(sync).get_sequence_names())
    assert {sequence.name for sequence in metadata._sequences.values()} <= set(sequences)


async def test_the_newest_schema_is_the_one_that_alembic_comes_to(database_url: str) -> None:
    config = Config()
    config.set_main_option("script_location", "libs/db/migrations")
    config.set_main_option("recursive_version_locations", "true")
    schema = await schema_of(database_url)
    assert schema.newest == schema.found == ScriptDirectory.from_config(config).get_current_head()


async def test_service_waits_for_the_schema_that_somebody_else_provides(empty_database_url: str) -> None:
    settings = DatabaseSettings(url=empty_database_url, migrate=False)
    with pytest.raises(Unavailable, match="run: resolute db upgrade"):
        await provide_schema(structs.replace(settings, connect_timeout_s=0.01))
    assert (await schema_of(empty_database_url)).found is None, "nobody touched it"
    waiting = asyncio.create_task(provide_schema(settings))
    before = await upgrade(empty_database_url)
    await waiting
    assert (before.is_outdated, (await schema_of(empty_database_url)).is_outdated) == (True, False)


async def test_schema_of_a_newer_release_is_left_as_it_is(empty_database_url: str) -> None:
    await upgrade(empty_database_url)
    engine = create_async_engine(empty_database_url, poolclass=NullPool)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    for migrate in (True, False):
        await provide_schema(DatabaseSettings(url=empty_database_url, migrate=migrate, connect_timeout_s=0.01))
    assert (await schema_of(empty_database_url)).found == "9999"


async def test_everybody_may_migrate_at_once(database_url: str) -> None:
    await asyncio.gather(*(upgrade(database_url) for _ in range(4)))
    engine = create_async_engine(database_url, poolclass=NullPool)
    async with engine.connect() as connection:
        count = (await connection.execute(text("SELECT count(*) FROM users"))).scalar_one()
    assert count == 2, "what the first migration adds is added once"


async def test_releases_of_the_former_lock_keep_only_their_own_schemas_from_being_migrated(
    empty_database_url: str,
) -> None:
    engine = create_async_engine(empty_database_url, poolclass=NullPool)
    async with engine.connect() as former:
        await former.execute(text("SELECT pg_advisory_lock(:key)"), {"key": FORMER_LOCK})
        upgrading = asyncio.create_task(upgrade(empty_database_url, to=LAST_OF_FORMER_LOCK))
        waits = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = :key AND NOT granted")
        async with asyncio.timeout(60):
            while not await former.scalar(waits, {"key": FORMER_LOCK}):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (await schema_of(empty_database_url)).found is None
        await former.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": FORMER_LOCK})
        await upgrading
        await former.execute(text("SELECT pg_advisory_lock(:key)"), {"key": FORMER_LOCK})
        await asyncio.wait_for(upgrade(empty_database_url), 60)
    assert not (await schema_of(empty_database_url)).is_outdated


async def test_hosts_of_storage_that_is_stored_are_remembered(empty_database_url: str) -> None:
    await upgrade(empty_database_url, to="0004")
    engine = create_async_engine(empty_database_url, poolclass=NullPool)
    azure = "DefaultEndpointsProtocol=http;AccountName=a;AccountKey=aw==;BlobEndpoint=http://Azurite:10000/a"
    stored = {
        "storage_backends (config, config_hash) VALUES (:section, 'x')": {
            "endpoint_url": "http://of-checkpoints:9000/"
        },
        "workspaces (name, owner_id, checkpoint_storage) VALUES ('w', 1, :section)": {
            "account_url": "https://10.0.0.1/a"
        },
        "templates (name, config) VALUES ('t', jsonb_build_object('checkpoint_storage', CAST(:section AS jsonb)))": {
            "connection_string": azure
        },
        "experiments (state, config, original_config, owner_id, project_id, job_id, start_time) VALUES"
        " ('COMPLETED', jsonb_build_object('checkpoint_storage', CAST(:section AS jsonb)), '', 1, 1, 'j', now())": {
            "endpoint_url": "https://[fd00::1]"
        },
        "config_policies (workspace_id, workload_type, invariant_config, updated_by) VALUES"
        " (1, 'EXPERIMENT', jsonb_build_object('checkpoint_storage', CAST(:section AS jsonb)), 1)": {
            "endpoint_url": "http://of-a-policy"
        },
        "workspaces (name, owner_id, checkpoint_storage) VALUES ('odd', 1, :section)": {"endpoint_url": "http://[odd"},
        "workspaces (name, owner_id, checkpoint_storage) VALUES ('list', 1, :section)": ["endpoint_url"],
    }
    async with engine.begin() as connection:
        for statement, section in stored.items():
            await connection.execute(text(f"INSERT INTO {statement}"), {"section": json.dumps(section)})
    await upgrade(empty_database_url)
    async with engine.connect() as connection:
        found = (await connection.execute(text("SELECT host, port FROM storage_hosts"))).all()
    assert {(host, port) for host, port in found} == {
        ("of-checkpoints", 9000),
        ("10.0.0.1", 443),
        ("azurite", 10000),
        ("fd00::1", 443),
        ("of-a-policy", 80),
    }
    await engine.dispose()
