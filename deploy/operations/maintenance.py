"""``resolute maintenance``: when nothing runs on which nodes, in the database of an installation."""

from __future__ import annotations

import argparse
import asyncio
import json
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from deploy.command_line import Commands, behind_the_command
from deploy.operations.settings import OperationsSettings, add_settings_argument, load_settings
from libs.cluster.loading import read_cluster_config
from libs.db.engine import Connection, connect_database
from libs.maintenance.rows import all_windows, delete_window, insert_window, lock_window, update_window
from libs.maintenance.windows import MaintenanceWindow, check_window

_TIME: Final = "a time as in 2026-01-31T12:00:00Z; without a zone it is this machine's"


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser("maintenance", description=__doc__, parents=[behind_the_command()])
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _action(actions, "list", "what is announced, and what was", _list)
    add = _action(actions, "add", "announce maintenance", _add)
    _add_fields(add, required=True)
    change = _action(actions, "change", "change what was announced", _change)
    change.add_argument("id", type=int, metavar="ID")
    _add_fields(change, required=False)
    remove = _action(actions, "remove", "take it back; what has left starts again", _remove)
    remove.add_argument("id", type=int, metavar="ID")


def _action(
    actions: Commands, name: str, says: str, work: Callable[[Connection, Namespace], Awaitable[list[MaintenanceWindow]]]
) -> ArgumentParser:
    parser = actions.add_parser(name, help=says, description=f"{says[0].upper()}{says[1:]}.")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    add_settings_argument(parser)
    parser.set_defaults(run=_run, work=work)
    return parser


def _add_fields(parser: ArgumentParser, *, required: bool) -> None:
    where = parser.add_mutually_exclusive_group(required=required)
    where.add_argument("--pool", help="all nodes of this resource pool")
    where.add_argument("--nodes", nargs="+", metavar="NODE", help="these nodes, in whichever pool")
    parser.add_argument("--from", dest="starts_at", type=_moment, required=required, metavar="TIME", help=_TIME)
    parser.add_argument("--to", dest="ends_at", type=_moment, required=required, metavar="TIME", help=_TIME)
    parser.add_argument("--message", help="what those read whose work waits for the end")


def _moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(f"{text[:50]!r}: use {_TIME}") from error


def _run(arguments: Namespace) -> int:
    settings = load_settings(arguments)
    arguments.pools = _pools(settings)
    for window in asyncio.run(_work(settings, arguments)):
        print(_as_json(window) if arguments.json else f"{window.id}  {window.sentence}")
    return 0


def _pools(settings: OperationsSettings) -> list[str] | None:
    """Those of the cluster configuration, where that is known."""
    if settings.cluster_config is None:
        return None
    config, _ = read_cluster_config(Path(settings.cluster_config))
    return [pool.pool_name for pool in config.resource_pools]


async def _work(settings: OperationsSettings, arguments: Namespace) -> list[MaintenanceWindow]:
    async with connect_database(settings.database) as db, db.transaction() as connection:
        found: list[MaintenanceWindow] = await arguments.work(connection, arguments)
        return found


async def _list(connection: Connection, _: Namespace) -> list[MaintenanceWindow]:
    return await all_windows(connection)


async def _add(connection: Connection, arguments: Namespace) -> list[MaintenanceWindow]:
    now = datetime.now(UTC)
    window = MaintenanceWindow(id=0, **_given(arguments))
    check_window(window, pools=arguments.pools, now=now)
    return [msgspec.structs.replace(window, id=await insert_window(connection, window, now=now))]


async def _change(connection: Connection, arguments: Namespace) -> list[MaintenanceWindow]:
    given = _given(arguments)
    if given.get("pool"):
        given["nodes"] = ()
    if given.get("nodes"):
        given["pool"] = ""
    window = msgspec.structs.replace(await lock_window(connection, arguments.id), **given)
    check_window(window, pools=arguments.pools, now=datetime.now(UTC))
    await update_window(connection, window)
    return [window]


async def _remove(connection: Connection, arguments: Namespace) -> list[MaintenanceWindow]:
    window = await lock_window(connection, arguments.id)
    await delete_window(connection, window.id)
    return [window]


def _given(arguments: Namespace) -> dict[str, Any]:
    """The fields that were named on the command line."""
    nodes = None if arguments.nodes is None else tuple(sorted(set(arguments.nodes)))
    fields = {
        "pool": arguments.pool,
        "nodes": nodes,
        "starts_at": arguments.starts_at,
        "ends_at": arguments.ends_at,
        "message": arguments.message,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _as_json(window: MaintenanceWindow) -> str:
    return json.dumps(json.loads(msgspec.json.encode(window)))
