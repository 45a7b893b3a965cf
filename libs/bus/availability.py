"""Retry a call to the bus until the server answers it: consumers outlast interruptions of any length."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import structlog
from nats.errors import Error as NatsError
from nats.js.errors import NotFoundError

from libs.bus.connection import Connection
from libs.bus.streams import ensure_streams
from libs.errors import Unavailable
from libs.retry import every, with_retry

log = structlog.get_logger()

_T = TypeVar("_T")

RESTART_PAUSE_S: Final = 0.25
"""Before something that was interrupted is begun again."""
_FAILURES: Final = (NatsError, OSError, Unavailable)


async def retry_until_answered(connection: Connection, stream: str, call: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """The answer to ``call``; waits for the server, and creates missing streams if this service may.

    Raises Unavailable when the connection is closed for good.
    """

    async def once() -> _T:
        try:
            await connection.wait_connected(connection.settings.request_timeout_s)
            return await connection.while_connected(call())
        except NotFoundError:
            log.warning("bus.stream_missing", stream=stream)
            if connection.settings.manage_streams:
                await _create_streams(connection)
            raise

    def say(error: Exception, attempt: int) -> None:
        if not isinstance(error, NotFoundError):  # that has been said
            log.warning("bus.call_failed", stream=stream, error=str(error))

    def may_come_back(error: Exception) -> bool:
        return isinstance(error, NotFoundError) or (isinstance(error, _FAILURES) and not connection.client.is_closed)

    try:
        return await with_retry(once, is_transient=may_come_back, on_retry=say, pause_s=every(RESTART_PAUSE_S))
    except _FAILURES as error:
        raise Unavailable("the bus connection is closed") from error


async def _create_streams(connection: Connection) -> None:
    try:
        await ensure_streams(connection)
    except Unavailable as error:
        log.warning("bus.streams_failed", error=str(error))
