"""What has to be so before a server of a cluster starts: its store is of a cluster, and the ones before it are there.

Servers with empty disks elect each other. Where a first server has everything, that would be a cluster of its own, and
the end of what the first one has: so the others begin one after the other, each when the one before it takes part.
Servers that have been part of the cluster begin at once.
"""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import structlog

from deploy.bus_servers.conversion import convert
from deploy.bus_servers.store import Store

log = structlog.get_logger()

_ASK_S: Final = 2.0
_PAUSE_S: Final = 1.0


async def prepare(store: Store, *, program: Path, servers: Sequence[str], monitors: Sequence[str], index: int) -> None:
    """Return when the server of this index may start.

    program   the server, for a conversion
    servers   names of all servers of the cluster
    monitors  where their status is, such as ``http://127.0.0.1:8222``, in the same order
    """
    store.recover()
    if index == 0:
        if await _has_to_be_converted(store, [each for number, each in enumerate(monitors) if number != index]):
            count = await convert(store, program=program, name=servers[0], second=servers[1], cluster="resolute")
            log.info("bus.store_converted", streams=count)
        return
    if store.is_of_cluster():
        return
    while not await _takes_part(monitors[index - 1], is_first=index == 1):
        log.info("bus.waiting", waits_for=servers[index - 1])
        await asyncio.sleep(_PAUSE_S)


async def _has_to_be_converted(store: Store, others: Sequence[str]) -> bool:
    if not store.has_streams():
        return False
    if not store.is_of_cluster():
        return True
    # Left over from a cluster that is over; if it is not, the others have the truth.
    return store.was_shrunk() and not any([await _status(each, "/healthz") for each in others])


async def _takes_part(monitor: str, *, is_first: bool) -> bool:
    """The first one needs the next for a vote: it is enough that it is part of a cluster at all."""
    if is_first:
        page = await _status(monitor, "/varz")
        return page is not None and page[0] == 200 and b'"cluster_port"' in page[1]
    page = await _status(monitor, "/healthz")
    return page is not None and page[0] == 200


async def _status(monitor: str, page: str) -> tuple[int, bytes] | None:
    return await asyncio.to_thread(_get, f"{monitor}{page}")


def _get(url: str) -> tuple[int, bytes] | None:
    """Status and body; None when nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=_ASK_S) as answer:  # noqa: S310  # one of our servers
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return None
