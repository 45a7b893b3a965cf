"""``resolute bus prepare | shrink``: one server of the bus becomes three, or three become one, and nothing is lost."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from pathlib import Path

from deploy.bus_servers.preparation import prepare
from deploy.bus_servers.shrinking import shrink
from deploy.bus_servers.store import Store
from deploy.command_line import Commands, behind_the_command
from deploy.local.servers.nats import find_nats_server
from deploy.operations.settings import add_settings_argument, load_settings
from libs.bus.connection import open_connection
from libs.bus.settings import BusSettings
from libs.telemetry import TelemetrySettings, configure_logging


def add_parser(commands: Commands) -> None:
    of_bus = commands.add_parser("bus", description=__doc__, parents=[behind_the_command()])
    actions = of_bus.add_subparsers(required=True, metavar="prepare | shrink")
    before = actions.add_parser("prepare", help="before a server of a cluster starts: convert its store, or wait")
    before.add_argument("--store", type=Path, required=True, help="its store_dir")
    before.add_argument("--name", required=True, help="its server_name")
    before.add_argument("--server", nargs=2, action="append", required=True, metavar=("NAME", "URL"), dest="servers")
    before.add_argument("--program", type=Path, help="nats-server (default: that of the wheel, or on the PATH)")
    before.set_defaults(run=_prepare)
    leave = actions.add_parser("shrink", help="leave everything on one server of a cluster, so that the others can go")
    leave.add_argument("--to", required=True, metavar="NAME", help="its server_name")
    add_settings_argument(leave)
    leave.set_defaults(run=_shrink)


def _prepare(arguments: Namespace) -> int:
    configure_logging(TelemetrySettings(log_format="console", log_level="info"), service="resolute")
    names = [name for name, _ in arguments.servers]
    asyncio.run(
        prepare(
            Store(arguments.store),
            program=arguments.program or find_nats_server(),
            servers=names,
            monitors=[url for _, url in arguments.servers],
            index=names.index(arguments.name),
        )
    )
    return 0


def _shrink(arguments: Namespace) -> int:
    count = asyncio.run(_leave_to(load_settings(arguments, log_level="info").bus, arguments.to))
    print(f"{count} streams are on {arguments.to} alone; the other servers can go")
    return 0


async def _leave_to(settings: BusSettings, server: str) -> int:
    async with open_connection(settings) as connection:
        return await shrink(connection, server=server)
