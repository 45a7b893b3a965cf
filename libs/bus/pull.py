"""Pulls messages of one JetStream consumer through one inbox, and ends when any of them may have been missed.

Whatever makes it uncertain that every message will come (a reconnect, a consumer or stream that is gone, a server that
stopped sending heartbeats) ends the session with ``PullLostError``; its owner then begins again from a state it knows.
Source: NATS ADR-13 (pull requests and their status messages), ADR-37.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, Self

import structlog
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from libs.bus.connection import Connection, apart
from libs.bus.headers import STATUS

log = structlog.get_logger()

HEARTBEAT_S: Final = 5.0
PULL_S: Final = 30.0
"""How long one pull request waits at the server for messages; the next one follows at once."""

_HEARTBEAT: Final = "100"
_FINISHED: Final = ("404", "408")


class PullLostError(Exception):
    """Messages may not come any more, or may have been missed. ``consumer_gone``: the server does not know it."""

    def __init__(self, reason: str, *, consumer_gone: bool = False) -> None:
        super().__init__(reason)
        self.consumer_gone = consumer_gone


class PullSession:
    """One pull request at a time to ``consumer``; an asynchronous context manager.

    ``open`` counts messages asked for that have neither come nor been declined yet.
    """

    def __init__(self, connection: Connection, *, stream: str, consumer: str) -> None:
        self._connection = connection
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._inbox = connection.client.new_inbox()
        self._arrived: asyncio.Queue[Msg | None] = asyncio.Queue()
        self._stack = AsyncExitStack()
        self._pulls = 0
        self._heartbeats = False
        self.open = 0

    async def __aenter__(self) -> Self:
        self._stack.callback(self._connection.on_gap(lambda: self._arrived.put_nowait(None)))
        subscription = await self._connection.client.subscribe(f"{self._inbox}.*", cb=self._arrived.put)

        async def unsubscribe() -> None:
            try:
                await subscription.unsubscribe()
            except (NatsError, OSError) as error:
                log.debug("bus.unsubscribe_failed", error=repr(error))  # gone together with the connection

        self._stack.push_async_callback(unsubscribe)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def pull(self, batch: int) -> None:
        """Ask for up to ``batch`` messages as they come. The previous request must have been served (``open`` is 0)."""
        nanoseconds = 10**9
        await self._request(
            {"batch": batch, "expires": int(PULL_S * nanoseconds), "idle_heartbeat": int(HEARTBEAT_S * nanoseconds)}
        )
        self._heartbeats = True

    async def pull_present(self, batch: int) -> None:
        """Ask for up to ``batch`` messages that are there now; the request ends when there are no more."""
        await self._request({"batch": batch, "no_wait": True})
        self._heartbeats = False

    async def _request(self, body: dict[str, Any]) -> None:
        self._pulls += 1
        self.open = body["batch"]
        try:
            await apart(
                self._connection.client.publish(
                    self._subject, json.dumps(body).encode(), reply=f"{self._inbox}.{self._pulls}"
                )
            )
        except (NatsError, OSError) as error:
            raise PullLostError(repr(error)) from error

    async def next(self) -> Msg | None:
        """The next message, or None when the request has ended without (``open`` is 0 then).

        Waits as long as the server shows signs of life. Raises PullLostError otherwise.
        """
        while True:
            silence_s = 2.5 * HEARTBEAT_S if self._heartbeats else self._connection.settings.request_timeout_s
            try:
                async with asyncio.timeout(silence_s):
                    message = await self._arrived.get()
            except TimeoutError as error:
                raise PullLostError("the server fell silent") from error
            if message is None:
                raise PullLostError("the connection was interrupted")
            status = (message.headers or {}).get(STATUS)
            if status is None:
                self.open -= 1
                return message
            if status == _HEARTBEAT or message.subject != f"{self._inbox}.{self._pulls}":
                continue  # a sign of life, or the end of a request that is history
            if status in _FINISHED:
                self.open = 0
                return None
            description = (message.headers or {}).get("Description", "")
            gone = status == "503" or "Consumer Deleted" in description or "Stream Deleted" in description
            raise PullLostError(f"{status} {description}".strip(), consumer_gone=gone)

    def has_arrived(self) -> bool:
        """Whether ``next`` would return or raise at once."""
        return not self._arrived.empty()

    def leftovers(self) -> list[Msg]:
        """Messages that have arrived and nobody took; empty afterwards."""
        found: list[Msg] = []
        while not self._arrived.empty():
            message = self._arrived.get_nowait()
            if message is not None and STATUS not in (message.headers or {}):
                found.append(message)
        return found
