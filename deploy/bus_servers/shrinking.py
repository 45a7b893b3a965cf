"""Leaves everything that a cluster of the bus keeps on one of its servers, so that the others can go.

Each stream makes that server its leader, and then keeps one copy, which is the leader's. The server has everything from
then on, whatever is written: nothing is acknowledged that only others have.
Source: JetStream API ``STREAM.LEADER.STEPDOWN`` with ``placement.preferred`` (NATS 2.11), ``STREAM.UPDATE``.
"""

from __future__ import annotations

from typing import Any, Final

import structlog

from deploy.bus_servers.store import SHRUNK
from libs.bus.connection import Connection
from libs.bus.contents.snapshots import API, ask, consumers_of, stream_names
from libs.errors import Unavailable
from libs.events import accounts
from libs.events.subjects import PUBLIC_EVENTS_STREAM
from libs.retry import every, with_retry

log = structlog.get_logger()

_TRIES_FOR_S: Final = 120.0
_PAUSE_S: Final = 0.5
_MARK: Final[dict[str, Any]] = {
    "name": SHRUNK,
    "subjects": ["resolute.shrunk"],
    "storage": "file",
    "retention": "limits",
    "max_msgs": 1,
}


async def shrink(connection: Connection, *, server: str) -> int:
    """Leave every stream and bucket on ``server`` alone; returns how many. May be done again at any time.

    connection  as a user of the control plane
    Raises Unavailable when that is not so within two minutes, naming what is missing.
    """
    count = 0
    for api, stream in await _streams(connection):

        async def leave(api: str = api, stream: str = stream) -> bool:
            return await _leave(connection, api, stream, server)

        count += await _patiently(leave)

    async def mark() -> bool:
        # On all servers first, then on the one, as everything else.
        info = await _find(connection, API, SHRUNK)
        if info is None:
            await ask(connection, f"{API}.STREAM.CREATE.{SHRUNK}", {**_MARK, "num_replicas": 3})
        return await _leave(connection, API, SHRUNK, server)

    await _patiently(mark)
    return count


async def _streams(connection: Connection) -> list[tuple[str, str]]:
    """Where its API is, and its name: all that there are, whoever made them."""
    names = sorted(set(await stream_names(connection)) - {SHRUNK})
    copies = [accounts.copy_api(name) for name in (None, *connection.settings.subscribers)]
    return [*((API, stream) for stream in names), *((api, PUBLIC_EVENTS_STREAM) for api in copies)]


async def _leave(connection: Connection, api: str, stream: str, server: str) -> bool:
    """Raises Unavailable until the stream is on ``server`` alone; False when there is none of that name."""
    info = await _find(connection, api, stream)
    if info is None:
        return False
    cluster = info.get("cluster") or {}
    if not cluster:
        raise Unavailable("this server of the bus is by itself: there is nothing to leave to it")
    if cluster.get("leader") != server:
        if info["config"]["num_replicas"] == 1:
            # The one copy is elsewhere: it has to be here before it can be the only one.
            await ask(connection, f"{api}.STREAM.UPDATE.{stream}", {**info["config"], "num_replicas": 3})
        await ask(connection, f"{api}.STREAM.LEADER.STEPDOWN.{stream}", {"placement": {"preferred": server}})
        raise Unavailable(f"{stream} is led by {cluster.get('leader')}, not yet by {server}")
    if info["config"]["num_replicas"] != 1:
        await ask(connection, f"{api}.STREAM.UPDATE.{stream}", {**info["config"], "num_replicas": 1})
        raise Unavailable(f"{stream} is not yet on {server} alone")
    if cluster.get("replicas"):
        raise Unavailable(f"{stream} still has copies elsewhere")
    if api == API:
        elsewhere = [
            each["name"]
            for each in await consumers_of(connection, stream)
            if (each.get("cluster") or {}).get("leader") != server
        ]
        if elsewhere:
            raise Unavailable(f"consumers of {stream} are not yet on {server}: {elsewhere[:3]}")
    log.info("bus.stream_left", stream=stream, server=server)
    return True


async def _find(connection: Connection, api: str, stream: str) -> dict[str, Any] | None:
    try:
        return await ask(connection, f"{api}.STREAM.INFO.{stream}")
    except Unavailable as error:
        if "stream not found" in str(error):
            return None
        raise


async def _patiently(call: Any) -> bool:
    done: bool = await with_retry(
        call,
        is_transient=lambda error: isinstance(error, Unavailable),
        on_retry=lambda error, attempt: log.debug("bus.not_yet", error=str(error), attempt=attempt),
        pause_s=every(_PAUSE_S),
        timeout_s=_TRIES_FOR_S,
    )
    return done
