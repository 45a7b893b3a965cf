"""Messages that nobody keeps: notifications to whoever listens now, and requests with a reply.

An error of the family in ``libs/errors.py`` travels back to the asker by name; anything else is a bug of the
answering side, logged there, and Unavailable here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from libs import errors
from libs.bus.connection import Connection, apart
from libs.errors import ResoluteError, Unavailable

log = structlog.get_logger()

ERROR_HEADER: Final = "Resolute-Error"
SERVED_AT_ONCE: Final = 32

_FAMILY: Final = {
    name: thing for name, thing in vars(errors).items() if isinstance(thing, type) and issubclass(thing, ResoluteError)
}


@dataclass(frozen=True, slots=True)
class CoreMessage:
    subject: str
    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


async def publish_core(
    connection: Connection, subject: str, payload: bytes, headers: Mapping[str, str] | None = None
) -> None:
    """Tell whoever listens now. Without a connection the message is dropped and logged: it is no fact."""
    if not connection.client.is_connected:
        log.warning("bus.notification_dropped", subject=subject)
        return
    try:
        await apart(connection.client.publish(subject, payload, headers=dict(headers) if headers else None))
    except (NatsError, OSError) as error:
        log.warning("bus.notification_dropped", subject=subject, error=repr(error))


@asynccontextmanager
async def subscribe(
    connection: Connection,
    subject: str,
    callback: Callable[[CoreMessage], Awaitable[None]],
    *,
    on_gap: Callable[[], None] | None = None,
) -> AsyncIterator[None]:
    """Call ``callback`` for every message on ``subject`` while the block runs, one at a time, in order.

    ``on_gap`` is called when messages may have been missed; whoever waits for something then looks for himself.
    An exception of ``callback`` is logged and the next message delivered. Messages of streams arrive here as well.
    """

    async def deliver(message: Msg) -> None:
        try:
            await callback(CoreMessage(message.subject, message.data, message.headers or {}))
        except Exception:
            log.exception("bus.callback_failed", subject=message.subject)

    unregister = connection.on_gap(on_gap) if on_gap is not None else None
    try:
        subscription = await _listen(connection, subject, deliver)
        try:
            yield
        finally:
            await _unsubscribe(subscription)
    finally:
        if unregister is not None:
            unregister()


async def request(connection: Connection, subject: str, payload: bytes, timeout_s: float) -> bytes:
    """Ask a service and return its answer.

    Raises what the service raised if it is of the family in ``libs/errors.py``, and Unavailable when nobody serves
    ``subject`` or no answer came in ``timeout_s``.
    """
    await connection.wait_connected(timeout_s)
    try:
        reply = await connection.while_connected(connection.client.request(subject, payload, timeout=timeout_s))
    except (NatsError, OSError) as error:
        raise Unavailable(f"nobody answered on {subject}: {error}") from error
    kind = (reply.headers or {}).get(ERROR_HEADER)
    if kind is not None:
        raise _revive(kind, reply.data.decode())
    return reply.data


def _revive(kind: str, message: str) -> ResoluteError:
    cls = _FAMILY.get(kind, Unavailable)
    error = cls.__new__(cls)
    # Some of the family build their message from parts; the message as it stood is what has to arrive.
    Exception.__init__(error, message)
    return error


@asynccontextmanager
async def serve(
    connection: Connection,
    subject: str,
    handler: Callable[[CoreMessage], Awaitable[bytes]],
    *,
    queue: str = "",
) -> AsyncIterator[None]:
    """Answer requests on ``subject`` while the block runs; of the servers that share ``queue`` one gets each request.

    Up to ``SERVED_AT_ONCE`` requests are answered side by side. Leaving the block waits for the answers under way.
    """
    running: set[asyncio.Task[None]] = set()
    free = asyncio.Semaphore(SERVED_AT_ONCE)

    async def accept(message: Msg) -> None:
        await free.acquire()
        task = asyncio.create_task(_answer(connection, message, handler), name=f"serve {subject}")
        running.add(task)
        task.add_done_callback(running.discard)
        task.add_done_callback(lambda _: free.release())

    subscription = await _listen(connection, subject, accept, queue=queue)
    try:
        yield
    finally:
        await _unsubscribe(subscription)
        if running:
            await asyncio.wait(running, timeout=connection.settings.request_timeout_s)
        for task in running:
            task.cancel()


async def _answer(connection: Connection, message: Msg, handler: Callable[[CoreMessage], Awaitable[bytes]]) -> None:
    kind = None
    try:
        answer = await handler(CoreMessage(message.subject, message.data, message.headers or {}))
    except ResoluteError as error:
        kind, answer = type(error).__name__, str(error).encode()
    except Exception:
        log.exception("bus.request_failed", subject=message.subject)
        kind, answer = Unavailable.__name__, b"the service failed to answer"
    if not message.reply:
        return
    try:
        await apart(connection.client.publish(message.reply, answer, headers={ERROR_HEADER: kind} if kind else None))
    except (NatsError, OSError) as error:
        log.warning("bus.answer_lost", subject=message.subject, error=repr(error))


async def _listen(
    connection: Connection, subject: str, callback: Callable[[Msg], Awaitable[None]], queue: str = ""
) -> Subscription:
    try:
        subscription = await connection.client.subscribe(subject, queue=queue, cb=callback)
        if connection.client.is_connected:
            await connection.flush(timeout_s=10.0)  # from here on nothing is missed
    except (NatsError, OSError, TimeoutError) as error:
        raise Unavailable(f"the bus did not accept a subscription to {subject}: {error}") from error
    return subscription


async def _unsubscribe(subscription: Subscription) -> None:
    try:
        await subscription.unsubscribe()
    except (NatsError, OSError) as error:
        log.debug("bus.unsubscribe_failed", error=repr(error))  # the connection is gone, and the subscription with it
