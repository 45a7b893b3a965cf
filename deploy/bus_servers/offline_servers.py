"""Servers of the bus that nobody else reaches, for work on what is stored: on this machine, with new passwords."""

from __future__ import annotations

import json
import secrets
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deploy.local.servers.ports import free_port
from deploy.local.servers.process import ChildProcess
from libs.bus.connection import Connection, open_connection
from libs.bus.settings import BusSettings
from libs.events.accounts import CONTROL_PLANE, accounts, subscriber_account

KEEPS: Final = "keeps"
"""Tag of the first server, by which streams are placed on it."""
_PATIENCE_S: Final = 5.0


@dataclass(frozen=True)
class OfflineServer:
    name: str
    store: Path
    """Its ``store_dir``."""


@dataclass(frozen=True)
class OfflineServers:
    port: int
    """Of the first server."""
    password: str

    @asynccontextmanager
    async def connect(self, account: str) -> AsyncIterator[Connection]:
        """A connection to the first server, which may do everything in ``account``."""
        settings = BusSettings(
            url=f"nats://127.0.0.1:{self.port}",
            user=account,
            password=self.password,
            name="conversion",
            request_timeout_s=_PATIENCE_S,
        )
        async with open_connection(settings) as connection:
            yield connection


@contextmanager
def offline_servers(
    program: Path, members: Sequence[OfflineServer], *, folder: Path, cluster: str, subscribers: Sequence[str]
) -> Iterator[OfflineServers]:
    """Run one server by itself, or several as a cluster, for the duration of the block.

    folder       for configurations and logs, which exists
    cluster      its name, where there are several
    subscribers  names of those that have an account of their own
    """
    password = secrets.token_urlsafe(24)
    ports = [free_port() for _ in members]
    routes = [free_port() for _ in members]
    processes = []
    try:
        for index, member in enumerate(members):
            config = folder / f"{index}.conf"
            config.touch(mode=0o600)
            together = _cluster(cluster, routes, index) if len(members) > 1 else {}
            config.write_text(
                json.dumps({**_alone(member, ports[index], password, subscribers, keeps=index == 0), **together})
            )
            process = ChildProcess(
                [str(program), "-c", str(config)],
                log_path=folder / f"{index}.log",
                dies_with_parent=signal.SIGKILL,
            )
            process.start()
            processes.append(process)
        yield OfflineServers(ports[0], password)
    finally:
        for process in processes:
            process.stop(grace_s=60)


def _alone(
    member: OfflineServer, port: int, password: str, subscribers: Sequence[str], *, keeps: bool
) -> dict[str, object]:
    block = accounts(
        control_plane=[{"user": CONTROL_PLANE, "password": password}],
        subscribers={name: [{"user": subscriber_account(name), "password": password}] for name in (None, *subscribers)},
    )
    for account in block.values():
        account["jetstream"] = "enabled"
    return {
        "server_name": member.name,
        "listen": f"127.0.0.1:{port}",
        "max_payload": 8 * 2**20,
        "server_tags": [KEEPS] if keeps else [],
        "jetstream": {"store_dir": str(member.store), "max_file_store": 2**44},
        # The log of a cluster is below the name of the system account: here and later the one that need not be said.
        "accounts": block,
    }


def _cluster(name: str, routes: Sequence[int], index: int) -> dict[str, object]:
    return {
        "cluster": {
            "name": name,
            "listen": f"127.0.0.1:{routes[index]}",
            "no_advertise": True,
            "routes": [f"nats://127.0.0.1:{port}" for port in routes],
        }
    }
