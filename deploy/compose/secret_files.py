"""Secret files of a system in containers: who has which password, and what the bus is told about its users.

Each folder is a volume of its own, mounted only where what is in it is needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from deploy import nats_configuration
from deploy.nats_configuration import SUPERVISOR, launcher_user, subscriber_user

DATABASE: Final = "database"
"""The superuser of PostgreSQL."""
DATABASE_SERVICES: Final = "database-services"
"""The role that services have in it, which the migration makes."""
ADMIN: Final = "admin"
"""What ``admin`` and ``determined`` begin with."""
NATS: Final = "nats"
SERVICES: Final = ("api", "scheduler", "logs")
"""Services with all rights on the bus, each with a user of its own."""
BUS_ADDRESS: Final = "nats://nats:4222"
MONITORING: Final = "127.0.0.1:8222"
"""For the health check inside the container, and nobody else."""


def names(pools: Iterable[str], subscribers: Iterable[str] = ()) -> tuple[str, ...]:
    """Everything that has a password."""
    readers = map(subscriber_user, (None, *subscribers))
    return (DATABASE, DATABASE_SERVICES, ADMIN, *SERVICES, *map(launcher_user, pools), SUPERVISOR, *readers)


def files(password_of: Mapping[str, str], pools: Iterable[str], subscribers: Iterable[str] = ()) -> dict[str, str]:
    """Content by path: a folder, and the file in it.

    password_of  has all ``names`` of these pools and subscribers
    """
    pools, subscribers = tuple(pools), tuple(subscribers)
    readers = (DATABASE, DATABASE_SERVICES, ADMIN, *SERVICES, *map(launcher_user, pools))
    return {
        **{f"{reader}/password": password_of[reader] for reader in readers},
        f"{NATS}/nats-server.conf": _server(password_of, pools, subscribers),
        f"{NATS}/subscriber.json": _credentials(password_of, None),
        **{f"{NATS}/subscriber-{name}.json": _credentials(password_of, name) for name in subscribers},
    }


def _credentials(password_of: Mapping[str, str], subscriber: str | None) -> str:
    user = subscriber_user(subscriber)
    return json.dumps({"url": BUS_ADDRESS, "user": user, "password": password_of[user]}, indent=2) + "\n"


def _server(password_of: Mapping[str, str], pools: Iterable[str], subscribers: Sequence[str]) -> str:
    return (
        nats_configuration.server(
            listen="0.0.0.0:4222", name="nats", store_directory="/data", subscribers=1 + len(subscribers)
        )
        + f"http: {json.dumps(MONITORING)}\n"
        + nats_configuration.authorization(password_of, pools, services=SERVICES, subscribers=subscribers)
    )
