"""Secret files of a system in containers: who has which password, and what the bus is told about its users.

Each folder is a volume of its own, mounted only where what is in it is needed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final

from deploy import nats_configuration
from deploy.nats_configuration import SUBSCRIBER, SUPERVISOR, launcher_user

DATABASE: Final = "database"
ADMIN: Final = "admin"
"""What ``admin`` and ``determined`` begin with."""
NATS: Final = "nats"
SERVICES: Final = ("api", "scheduler", "logs")
"""Services with all rights on the bus, each with a user of its own."""
BUS_ADDRESS: Final = "nats://nats:4222"
MONITORING: Final = "127.0.0.1:8222"
"""For the health check inside the container, and nobody else."""


def names(pools: Iterable[str]) -> tuple[str, ...]:
    """Everything that has a password."""
    return (DATABASE, ADMIN, *SERVICES, *map(launcher_user, pools), SUPERVISOR, SUBSCRIBER)


def files(password_of: Mapping[str, str], pools: Iterable[str]) -> dict[str, str]:
    """Content by path: a folder, and the file in it.

    password_of  has all ``names`` of these pools
    """
    pools = tuple(pools)
    readers = (DATABASE, ADMIN, *SERVICES, *map(launcher_user, pools))
    subscriber = {"url": BUS_ADDRESS, "user": SUBSCRIBER, "password": password_of[SUBSCRIBER]}
    return {
        **{f"{reader}/password": password_of[reader] for reader in readers},
        f"{NATS}/nats-server.conf": _server(password_of, pools),
        f"{NATS}/subscriber.json": json.dumps(subscriber, indent=2) + "\n",
    }


def _server(password_of: Mapping[str, str], pools: Iterable[str]) -> str:
    return (
        nats_configuration.server(listen="0.0.0.0:4222", name="nats", store_directory="/data")
        + f"http: {json.dumps(MONITORING)}\n"
        + nats_configuration.authorization(password_of, pools, services=SERVICES)
    )
