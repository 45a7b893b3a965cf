"""Connections to tasks that are open: how many there may be, whether their users still may have them, and a drain."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final

import structlog

from libs.errors import ResoluteError, Unavailable
from libs.telemetry import counter, level
from services.api.http.database_errors import is_away
from services.api.proxy.activity import Activity
from services.api.proxy.gate import Gate, LetThrough
from services.api.proxy.services import ProxiedService
from services.api.proxy.settings import ProxySettings

OPEN: Final = level("resolute_api_proxy_connections", "Requests and websockets to tasks that are open")

OF_STRANGERS: Final = level(
    "resolute_api_proxy_connections_without_token",
    "Requests and websockets without a token to tasks that are open",
)
STRANGERS: Final = counter(
    "resolute_api_proxy_without_token_total",
    "Requests and websockets without a token that came to shells and other ports of tasks which ask for none",
    "outcome",
)

CLEAN_UP_S: Final = 2.0
"""How long connections that were cut may take to end."""

log = structlog.get_logger()


class ProxyConnection:
    """One of them."""

    __slots__ = ("_connections", "_cut", "address", "admission", "service", "was_cut")

    def __init__(
        self,
        connections: Connections,
        service: ProxiedService,
        admission: LetThrough,
        cut: Callable[[], object],
        address: str,
    ) -> None:
        self.address = address
        self._connections = connections
        self._cut = cut
        self.service = service
        self.admission = admission
        self.was_cut = False

    def cut(self) -> None:
        """End it at once."""
        self.was_cut = True
        self._cut()

    def closed(self) -> None:
        """It has ended. May be said again."""
        self._connections.remove(self)


class _During:
    """A block that is one of them. Every request is, so it is no generator: those cost several times as much."""

    __slots__ = ("_connection", "_task")

    def __init__(self, connection: ProxyConnection, task: asyncio.Task[Any]) -> None:
        self._connection = connection
        self._task = task

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._connection.closed()
        if self._connection.was_cut and isinstance(error, asyncio.CancelledError):
            self._task.uncancel()
            raise Unavailable("the connection to the task was cut, try again") from error


class Connections:
    """All open connections of this replica."""

    def __init__(self, *, gate: Gate, activity: Activity, settings: ProxySettings) -> None:
        self._gate = gate
        self._activity = activity
        self._settings = settings
        self._open: set[ProxyConnection] = set()
        self._strangers: Counter[str] = Counter()
        self._none_left = asyncio.Event()
        self._none_left.set()

    def __len__(self) -> int:
        return len(self._open)

    def add(
        self, service: ProxiedService, admission: LetThrough, *, cut: Callable[[], object], address: str
    ) -> ProxyConnection:
        """Count a connection until it says that it is ``closed``. Raises Unavailable when there are too many.

        address  of the client; strangers at one address may have so many and no more
        """
        if len(self._open) >= self._settings.connections:
            raise Unavailable("there are too many connections to tasks, try again later")
        if admission.is_stranger:
            self._add_stranger(address)
        else:
            self._activity.opened(service.task_id)
        connection = ProxyConnection(self, service, admission, cut, address)
        self._open.add(connection)
        self._none_left.clear()
        OPEN.value += 1
        return connection

    def during(self, service: ProxiedService, admission: LetThrough, *, address: str) -> _During:
        """Count what the current task does in the block, which is cancelled when it is cut: Unavailable then."""
        task = asyncio.current_task()
        assert task is not None
        return _During(self.add(service, admission, cut=task.cancel, address=address), task)

    def _add_stranger(self, address: str) -> None:
        most = self._settings.strangers_per_address
        if self._strangers[address] >= most:
            STRANGERS.labels("refused").inc()
            raise Unavailable(f"there are {most} connections without a token from {address or 'this address'} already")
        self._strangers[address] += 1
        STRANGERS.labels("accepted").inc()
        OF_STRANGERS.value += 1

    def _remove_stranger(self, address: str) -> None:
        self._strangers[address] -= 1
        if not self._strangers[address]:
            del self._strangers[address]
        OF_STRANGERS.value -= 1

    def remove(self, connection: ProxyConnection) -> None:
        if connection not in self._open:
            return
        self._open.discard(connection)
        if connection.admission.is_stranger:
            self._remove_stranger(connection.address)
        else:
            self._activity.closed(connection.service.task_id)
        OPEN.value -= 1
        if not self._open:
            self._none_left.set()

    async def run(self) -> None:
        """Cut those whose users may not have them any more, until cancelled."""
        while True:
            await asyncio.sleep(self._settings.recheck_interval_s)
            await self.check_again()

    async def check_again(self) -> None:
        """Ask again for each, once for all that somebody has to the same service by the same token."""
        answers: dict[tuple[str, LetThrough], str] = {}
        for connection in tuple(self._open):
            key = connection.service.service_id, connection.admission
            if key not in answers:
                answers[key] = await self._refusal(connection)
            if answers[key] and connection in self._open:
                log.info("proxy.cut", service=connection.service.service_id, reason=answers[key])
                connection.cut()

    async def _refusal(self, connection: ProxyConnection) -> str:
        try:
            await self._gate.check_again(connection.service, connection.admission)
        except Exception as error:
            if is_away(error):
                return ""  # a database that is away refuses nobody
            if not isinstance(error, ResoluteError):
                raise
            return str(error)
        return ""

    async def drain(self) -> None:
        """Wait until all have ended, as long as the settings say, and cut those that are left."""
        if self._open:
            log.info("proxy.draining", connections=len(self._open), at_most_s=self._settings.drain_s)
        try:
            async with asyncio.timeout(self._settings.drain_s):
                while self._open:  # between a handshake and its tunnel there is none for a moment
                    await self._none_left.wait()
        except TimeoutError:
            log.info("proxy.cut_all", connections=len(self._open))
            for connection in tuple(self._open):
                connection.cut()
            with suppress(TimeoutError):
                async with asyncio.timeout(CLEAN_UP_S):
                    await self._none_left.wait()
