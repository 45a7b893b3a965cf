"""``resolute backup FILE`` while the system runs, and ``resolute restore FILE`` into a new installation: into an empty
state folder where nobody names a database."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser, Namespace
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import asyncpg
from msgspec import structs

from deploy.backup import one_machine, streams
from deploy.backup.archive import (
    BackupContent,
    BackupCounts,
    examine_archive,
    read_sections,
    write_archive,
)
from deploy.backup.catalog import drop_schema, lock_tables
from deploy.backup.configuration import (
    Configuration,
    checkpoint_folder,
    dump_configuration,
    read_cluster_file,
    read_configuration,
)
from deploy.backup.database import DatabaseLoader, dump_database, expect_empty
from deploy.command_line import Commands, behind_the_command
from deploy.local.layout import Layout
from deploy.local.supervision import processes
from deploy.operations.settings import OperationsSettings, add_settings_argument, load_settings, names_database
from libs.bus import Bus, connect_bus
from libs.db.connecting.settings import DatabaseSettings, address
from libs.db.failures import DRIVER_ERRORS
from libs.db.migrate import upgrade
from libs.db.schema.found import revisions, schema_of
from libs.errors import FailedPrecondition, InvalidRequest, Unavailable
from libs.telemetry import TelemetrySettings, configure_logging


def add_parser(commands: Commands) -> None:
    for name, run in (("backup", _backup), ("restore", _restore)):
        parser: ArgumentParser = commands.add_parser(name, description=__doc__, parents=[behind_the_command()])
        parser.add_argument("file", type=Path)
        add_settings_argument(parser)
        if name == "restore":
            parser.add_argument("--host", help="address the api of a new state folder listens on (default: as it did)")
        parser.set_defaults(run=run)


def _backup(arguments: Namespace) -> int:
    settings = load_settings(arguments)
    up = None if names_database(arguments) else one_machine.up_options(Layout.at(arguments.state))
    configuration = read_cluster_file(Path(settings.cluster_config) if settings.cluster_config else None, up)
    counts = asyncio.run(back_up(settings, arguments.file, configuration))
    print(f"{_said(counts)} are in {arguments.file}; it holds secrets, and only you may read it")
    if configuration.secrets:
        print(f"among them, of the configuration: {', '.join(configuration.secrets)}")
    return 0


def _restore(arguments: Namespace) -> int:
    if names_database(arguments):
        counts = asyncio.run(restore(load_settings(arguments), arguments.file))
        print(f"{_said(counts)} are restored; start the services")
        return 0
    configure_logging(TelemetrySettings(log_format="console", log_level="warning"), service="resolute")
    content, expected = _examined(arguments.file)
    layout, configuration = Layout.at(arguments.state), read_configuration(arguments.file)
    with one_machine.servers(layout, configuration, host=arguments.host):
        counts = asyncio.run(_fill(load_settings(arguments), arguments.file, content, expected))
    print(f"{_said(counts)} are restored into {layout.root}; start the services: {_start(layout, arguments)}")
    if (folder := checkpoint_folder(configuration)) is not None:
        print(f"files of checkpoints are in no backup; they are looked for in {folder}")
    return 0


def _start(layout: Layout, arguments: Namespace) -> str:
    """What to type next."""
    command = "resolute" if arguments.state is None else f"resolute --state {arguments.state}"
    is_running = processes.find(layout, processes.SUPERVISOR) is not None
    return f"{command} down, and {command} up" if is_running else f"{command} up"


async def back_up(settings: OperationsSettings, file: Path, configuration: Configuration | None = None) -> BackupCounts:
    """Write the installation, as it is in these moments, to a new file; its schema may be that of a release before."""
    schema = await schema_of(address(settings.database))
    if schema.found is None:
        raise FailedPrecondition("the database is empty: there is nothing to back up")
    if not schema.is_known:
        raise FailedPrecondition(
            f"the database has the schema {schema.found}; back it up with the release that knows it"
        )
    content = BackupContent(
        taken_at=datetime.now(UTC).isoformat(), release=metadata.version("resolute"), schema=schema.found
    )
    async with AsyncExitStack() as stack:
        connection = await _connection(stack, settings.database)
        bus = await stack.enter_async_context(connect_bus(structs.replace(settings.bus, manage_streams=False)))
        archive = stack.enter_context(write_archive(file, content))
        dump_configuration(configuration or Configuration(), archive)
        messages = await streams.dump_streams(bus, archive)
        rows = await dump_database(connection, archive, schema=schema.found)
        counts = BackupCounts(messages=messages, rows=rows)
        archive.end(counts)
    return counts


async def restore(settings: OperationsSettings, file: Path) -> BackupCounts:
    """Fill an empty installation from a file; the services must not run. The database is filled whole or not at all.

    A backup of a release before goes into the schema of that release, and migrations bring it to the newest.
    """
    return await _fill(settings, file, *_examined(file))


async def _fill(
    settings: OperationsSettings, file: Path, content: BackupContent, expected: BackupCounts
) -> BackupCounts:
    schema = await schema_of(address(settings.database))
    if not schema.is_known:
        raise FailedPrecondition(
            f"the database has the schema {schema.found} of a newer release; restore into a new, empty database"
        )
    async with AsyncExitStack() as stack:
        connection = await _connection(stack, settings.database)
        bus = await stack.enter_async_context(connect_bus(settings.bus))
        await expect_empty(connection)
        await streams.expect_empty_streams(bus)
        if schema.found not in (None, content.schema):
            await _drop_empty_schema(connection)
        await upgrade(address(settings.database), to=content.schema)
        async with connection.transaction():
            rows = await _load_database(connection, file)
            if rows != expected.rows:
                raise InvalidRequest(f"{file} does not hold what it says")
            messages = await _load_streams(bus, file, orders=await streams.live_orders(connection))
    await upgrade(address(settings.database))
    return BackupCounts(messages=messages, rows=rows)


def _examined(file: Path) -> tuple[BackupContent, BackupCounts]:
    """What is in a backup, all of which has been read. Raises FailedPrecondition when it is of a newer release."""
    content, expected = examine_archive(file)
    known = revisions()
    if content.schema not in known:
        raise FailedPrecondition(
            f"{file} has the schema {content.schema} of a newer release, {content.release}; this one knows none beyond"
            f" {known[-1]}: restore the file with that release or a later one"
        )
    return content, expected


async def _drop_empty_schema(connection: Any) -> None:
    """Make room for the schema of the backup where another one was made and never used. Raises FailedPrecondition."""
    async with connection.transaction():
        await lock_tables(connection)
        await expect_empty(connection)
        await drop_schema(connection)


async def _load_database(connection: Any, file: Path) -> dict[str, int]:
    loader = DatabaseLoader(connection)
    await loader.begin()
    for name, parts in read_sections(file):
        if name.startswith("database"):
            await loader.take(name, parts)
    await loader.end()
    return loader.rows


async def _load_streams(bus: Bus, file: Path, *, orders: set[str]) -> dict[str, int]:
    messages = {}
    for section, parts in read_sections(file):
        if section.startswith(f"{streams.PREFIX}/"):
            name = section.removeprefix(f"{streams.PREFIX}/")
            messages[name] = await streams.load_stream(bus, name, parts, orders=orders)
    return messages


async def _connection(stack: AsyncExitStack, settings: DatabaseSettings) -> Any:
    """A connection of its own. Raises Unavailable."""
    try:
        connection = await asyncpg.connect(address(settings), timeout=10)
    except (OSError, TimeoutError, *DRIVER_ERRORS) as error:
        raise Unavailable(f"the database does not answer: {error}") from error
    stack.push_async_callback(connection.close)
    return connection


def _said(counts: BackupCounts) -> str:
    return f"{sum(counts.rows.values())} rows and {sum(counts.messages.values())} messages"
