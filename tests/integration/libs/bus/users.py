"""Users of a guarded server, with the passwords and settings that each has in these tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import nats

from deploy.nats_configuration import SERVICES, SUPERVISOR, launcher_user, subscriber_user
from libs.bus import BusSettings
from libs.events.permissions import SERVICES_INBOX, launcher_inbox
from tests.harness import NatsServer

OURS: Final = "gpu.A100 (large)"
THEIRS: Final = "cpu"
"""With ``OURS`` everything that has to be escaped in a subject, and in the configuration of the server."""
NAMED: Final = ("grafana", "alerts-2")
"""Subscribers with an account of their own."""
SHORT_S: Final = 0.2
"""For what is refused: the server does not answer then."""
PASSWORDS: Final = {
    user: f'{user}"\\password'
    for user in (SERVICES, SUPERVISOR, *map(subscriber_user, (None, *NAMED)), *map(launcher_user, (OURS, THEIRS)))
}


def settings(server: NatsServer, user: str, **more: Any) -> BusSettings:
    values = {"url": server.url, "user": user, "password": PASSWORDS[user], "logs_max_bytes": 2**28}
    return BusSettings(**{**values, **more})


def services_settings(server: NatsServer, **more: Any) -> BusSettings:
    return settings(server, SERVICES, inbox_prefix=SERVICES_INBOX, copy_events=True, **more)


def launcher_settings(server: NatsServer, pool: str, **more: Any) -> BusSettings:
    return settings(server, launcher_user(pool), manage_streams=False, inbox_prefix=launcher_inbox(pool), **more)


@asynccontextmanager
async def raw(server: NatsServer, user: str, inbox_prefix: str = "_INBOX") -> AsyncIterator[tuple[Any, list[str]]]:
    """A client of NATS itself, and what the server has refused it."""
    refused: list[str] = []

    async def note(error: Exception) -> None:
        refused.append(str(error))

    client = await nats.connect(
        server.url, user=user, password=PASSWORDS[user], inbox_prefix=inbox_prefix, error_cb=note
    )
    try:
        yield client, refused
    finally:
        await client.close()
