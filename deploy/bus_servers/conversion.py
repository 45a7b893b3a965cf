"""Makes of the store of a server by itself the store of the first server of a cluster.

Streams keep their messages and sequences, consumers what they have acknowledged. A server and a stand-in for the second
one form a cluster here, where nobody else reaches them, and the streams are restored onto the first. The second one of
the real cluster comes with an empty disk and gives the first its vote; the stand-in has done its work then.
Measured with 2.12 and 2.15: a single server with a block ``cluster`` elects nobody, creates nothing, and deletes the
streams that it finds after half a minute.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog

from deploy.bus_servers.offline_servers import KEEPS, OfflineServer, OfflineServers, offline_servers
from deploy.bus_servers.store import SHRUNK, Store
from libs.bus.contents.snapshots import (
    API,
    LISTED,
    StreamSnapshot,
    ask,
    consumers_of,
    restore_snapshot,
    stream_names,
    take_snapshot,
)
from libs.errors import FailedPrecondition, Unavailable
from libs.events.accounts import named_subscribers
from libs.retry import every, with_retry

log = structlog.get_logger()

Result = TypeVar("Result")

_TRIES_FOR_S: Final = 60.0
_PAUSE_S: Final = 0.25
Snapshots = Mapping[str, list[StreamSnapshot]]
"""Account -> its streams."""


async def convert(store: Store, *, program: Path, name: str, second: str, cluster: str) -> int:
    """Convert ``store``, whose server is down; returns the number of streams. Nothing has changed when it fails.

    program  the server, of the release that is going to run
    name     of the server in the cluster; ``second`` is that of another one
    cluster  its name
    Raises FailedPrecondition when a restored stream differs, Unavailable, ProcessFailed.
    """
    store.recover()
    store.built.mkdir(parents=True)
    first = OfflineServer(name, store.root)
    named = named_subscribers(store.accounts())
    with offline_servers(program, [first], folder=store.work, cluster=cluster, subscribers=named) as servers:
        snapshots = {account: await _take_all(servers, account, store.work) for account in sorted(store.accounts())}
    members = [OfflineServer(name, store.built), OfflineServer(second, store.work / "stand-in")]
    with offline_servers(program, members, folder=store.work, cluster=cluster, subscribers=named) as servers:
        for account, streams in snapshots.items():
            for snapshot in streams:
                await _restore(servers, account, snapshot)
    store.swap()
    return sum(len(streams) for streams in snapshots.values())


async def _take_all(servers: OfflineServers, account: str, folder: Path) -> list[StreamSnapshot]:
    async with servers.connect(account) as connection:

        async def take() -> list[StreamSnapshot]:
            names = sorted(set(await stream_names(connection)) - {SHRUNK})
            return [await take_snapshot(connection, each, folder / f"{account}.{each}.snapshot") for each in names]

        return await _patiently(take)


async def _restore(servers: OfflineServers, account: str, snapshot: StreamSnapshot) -> None:
    config = {**snapshot.config, "num_replicas": 1}
    stream = config["name"]
    async with servers.connect(account) as connection:

        async def restore() -> None:
            if stream not in await stream_names(connection):
                await restore_snapshot(connection, snapshot, {**config, "placement": {"tags": [KEEPS]}})

        async def update() -> dict[str, Any]:
            # Later it may be on any server.
            await ask(connection, f"{API}.STREAM.UPDATE.{stream}", config)
            return await ask(connection, f"{API}.STREAM.INFO.{stream}")

        async def consumers() -> int:
            return len(await consumers_of(connection, stream))

        await _patiently(restore)
        found = (await _patiently(update))["state"]
        if not _is_whole(snapshot, found) or await _patiently(consumers) < min(_consumers(snapshot), LISTED):
            raise FailedPrecondition(f"{stream} was {snapshot.state}, and would be {found}; the store is as it was")
        log.info("bus.stream_converted", stream=stream, messages=found["messages"])


def _is_whole(snapshot: StreamSnapshot, found: Mapping[str, Any]) -> bool:
    """What has a time to live may have come to its end meanwhile."""
    before = snapshot.state
    expires = snapshot.config.get("max_age") or snapshot.config.get("allow_msg_ttl")
    are_there = found["messages"] <= before["messages"] if expires else found["messages"] == before["messages"]
    return bool(are_there and found["last_seq"] == before["last_seq"])


def _consumers(snapshot: StreamSnapshot) -> int:
    return int(snapshot.state.get("consumer_count", 0))


async def _patiently(call: Callable[[], Awaitable[Result]]) -> Result:
    """A cluster takes some seconds until it can answer. Raises Unavailable when that is over."""
    return await with_retry(
        call,
        is_transient=lambda error: isinstance(error, Unavailable),
        on_retry=lambda error, attempt: log.debug("bus.not_yet", error=str(error), attempt=attempt),
        pause_s=every(_PAUSE_S),
        timeout_s=_TRIES_FOR_S,
    )
