"""``resolute events``: what happens, one line for each event: when, to which object, and how it is afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from argparse import Namespace
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from msgspec import structs

from deploy.command_line import Commands, behind_the_command, past_moment
from deploy.events.lines import SeenEvent, as_json, as_line
from deploy.local.configuration import bus_users
from deploy.local.failure import CannotStart
from deploy.local.layout import Layout, Options
from deploy.local.supervision import processes
from deploy.operations.settings import BUS_VARIABLE, add_settings_argument, load_settings
from deploy.terminal import colours
from libs.bus import Bus, BusSettings, Message, connect_bus
from libs.bus.headers import MSG_ID, SUBJECT, TIME, TYPE, event_attribute
from libs.errors import InvalidRequest
from libs.events.subjects import ALL_EVENTS, EVENT_PREFIX, EVENTS_STREAM, PUBLIC_EVENTS_STREAM
from libs.telemetry import TelemetrySettings, configure_logging


def add_parser(commands: Commands) -> None:
    parser = commands.add_parser("events", description=__doc__, parents=[behind_the_command()])
    parser.add_argument("subject", nargs="?", default=ALL_EVENTS, help=f"only these (default: {ALL_EVENTS})")
    parser.add_argument(
        "--since",
        type=past_moment,
        metavar="TIME",
        help="begin with those that are kept since then, as in 10m, 2h, 7d or 2026-01-31T12:00:00Z (default: now)",
    )
    parser.add_argument("--json", action="store_true", help="one CloudEvent per line, for programs")
    add_settings_argument(parser)
    parser.set_defaults(run=_run)


def _run(arguments: Namespace) -> int:
    if not arguments.subject.startswith(f"{EVENT_PREFIX}."):
        raise InvalidRequest(f"{arguments.subject} is not a subject of events: those begin with {EVENT_PREFIX}.")
    bus = _bus_settings(arguments)
    asyncio.run(_print_events(bus, arguments.subject, arguments.since or datetime.now(UTC), as_programs=arguments.json))
    return 0


def _bus_settings(arguments: Namespace) -> BusSettings:
    """The bus that was named, else that of this machine, which has a user who may listen."""
    if arguments.settings is not None or any(name.startswith(BUS_VARIABLE) for name in os.environ):
        return structs.replace(load_settings(arguments).bus, manage_streams=False)
    configure_logging(TelemetrySettings(log_format="console", log_level="warning"), service="resolute")
    layout = Layout.at(arguments.state)
    if Options.load(layout) is None or processes.find(layout, "nats") is None:
        raise CannotStart(f"nothing runs in {layout.root}; start it with: resolute up")
    return BusSettings(**bus_users.subscriber_bus(layout, "resolute-events"))


async def _print_events(settings: BusSettings, subject: str, since: datetime, *, as_programs: bool) -> None:
    coloured = colours(sys.stdout)
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    async with (
        connect_bus(settings) as bus,
        aclosing(bus.follow_stream(await _stream(bus), since=since, filter=subject)) as messages,
    ):
        async for message in messages:
            event = read_event(message)
            if event is not None:
                print(as_json(event) if as_programs else as_line(event, coloured=coloured, width=width), flush=True)


async def _stream(bus: Bus) -> str:
    """Subscribers have an account of their own, with a copy of the stream."""
    return EVENTS_STREAM if EVENTS_STREAM in await bus.stream_states() else PUBLIC_EVENTS_STREAM


def read_event(message: Message) -> SeenEvent | None:
    """What a message says, in the time zone of this machine; None for one that is no event."""
    try:
        data: Any = json.loads(message.data)
    except ValueError:
        return None
    tokens = message.subject.split(".")
    if not isinstance(data, dict) or len(tokens) < 5:
        return None
    headers = message.headers
    said = event_attribute(headers, TIME)
    at = datetime.fromisoformat(said) if said else message.stored_at or datetime.now(UTC)
    return SeenEvent(
        id=event_attribute(headers, "ce-id") or event_attribute(headers, MSG_ID) or str(message.sequence),
        source=event_attribute(headers, "ce-source") or "/resolute",
        type=event_attribute(headers, TYPE) or ".".join((*tokens[:3], tokens[4])),
        subject=event_attribute(headers, SUBJECT) or tokens[3],
        at=at.astimezone(),
        data=data,
    )
