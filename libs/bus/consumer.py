"""Durable consumers: every message of a stream reaches a handler at least once, whatever dies on the way.

Several processes with the same ``durable`` share the messages. A handler that returns has done its message; one that
raises gets it again, later each time. Handlers are idempotent, as redelivery is normal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, Final, Literal

import structlog
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from libs.bus.availability import RESTART_PAUSE_S, retry_until_answered
from libs.bus.connection import Connection
from libs.bus.durables import Definition, provide, until_changed, watch_lag
from libs.bus.message import Message, ack, give_back, kept_alive, read
from libs.bus.pull import PullLostError, PullSession
from libs.retry import backoff_s
from libs.run_until_first_exits import run_until_first_exits
from libs.telemetry import counter

log = structlog.get_logger()

Handler = Callable[[Message], Awaitable[None]]

LONGEST_BACKOFF_S: Final = 30.0
"""Before the next delivery of a message that failed again and again."""

HANDLED: Final = counter(
    "resolute_bus_handled_total", "Messages given to handlers of a durable consumer", "durable", "outcome"
)


async def consume(
    connection: Connection,
    *,
    stream: str,
    durable: str,
    filter: str,
    handler: Handler,
    concurrency: int = 1,
    ack_wait_s: float = 30.0,
    max_ack_pending: int | None = None,
    deliver: Literal["all", "new"] = "all",
    finish_s: float = 10.0,
    on_gap: Callable[[], None] = lambda: None,
) -> None:
    """Give every message that matches ``filter`` to ``handler``; runs until cancelled.

    concurrency      handlers side by side in this process; with 1 (and ``max_ack_pending`` 1) strictly one by one
    ack_wait_s       seconds without a sign of life after which the server gives the message to somebody else
    max_ack_pending  messages under way in all processes together; the server's default when None
    deliver          where a consumer begins that did not exist: at what the stream still has, or at what comes next
    finish_s         seconds that handlers have to finish after cancellation, before they are cancelled themselves
    on_gap           called when the consumer was not as this call had made it, so that messages may have passed by

    Interruptions of any length and a server without the consumer or the stream are waited out. Raises Unavailable only
    when the connection is closed for good.
    """
    config = ConsumerConfig(
        name=durable,
        durable_name=durable,
        filter_subject=filter,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=ack_wait_s,
        max_deliver=-1,
        max_ack_pending=max_ack_pending,
        deliver_policy=DeliverPolicy.ALL if deliver == "all" else DeliverPolicy.NEW,
    )
    running: set[asyncio.Task[None]] = set()
    known: Definition | None = None
    try:
        while True:
            found = await retry_until_answered(connection, stream, lambda: provide(connection, stream, config))
            if known not in (None, found):
                log.warning("bus.consumer_was_another", durable=durable)
                on_gap()
            known = found
            try:
                async with AsyncExitStack() as stack:
                    session = await stack.enter_async_context(PullSession(connection, stream=stream, consumer=durable))
                    stack.push_async_callback(_return_leftovers, session)
                    dispatch = _dispatch(
                        session,
                        running,
                        start=lambda raw: _handle(raw, handler, durable, ack_wait_s),
                        concurrency=concurrency,
                    )
                    await run_until_first_exits(
                        dispatch=dispatch,
                        watch=until_changed(connection, stream, durable, found),
                        lag=watch_lag(connection, stream, durable),
                    )
            except (PullLostError, NatsError, OSError) as error:
                log.info("bus.consumer_interrupted", durable=durable, reason=str(error))
                await asyncio.sleep(RESTART_PAUSE_S)
    finally:
        await _finish(connection, running, finish_s)


async def _return_leftovers(session: PullSession) -> None:
    await give_back(session.leftovers())


async def _dispatch(
    session: PullSession,
    running: set[asyncio.Task[None]],
    *,
    start: Callable[[Msg], Coroutine[Any, Any, None]],
    concurrency: int,
) -> None:
    """Keep the handlers busy: ask for as many messages as there are idle ones, start each as it comes."""
    while True:
        while len(running) >= concurrency:
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        if session.open == 0:
            await session.pull(concurrency - len(running))
        raw = await session.next()
        if raw is not None:
            task = asyncio.create_task(start(raw), name="bus handler")
            running.add(task)
            task.add_done_callback(running.discard)


async def _handle(raw: Msg, handler: Handler, durable: str, ack_wait_s: float) -> None:
    message = read(raw)
    try:
        async with kept_alive((raw,), ack_wait_s=ack_wait_s):
            await handler(message)
    except asyncio.CancelledError:
        await give_back((raw,))
        raise
    except Exception:
        delay_s = backoff_s(message.delivered, longest_s=LONGEST_BACKOFF_S)
        log.exception(
            "bus.handler_failed",
            durable=durable,
            subject=message.subject,
            sequence=message.sequence,
            delivered=message.delivered,
            retry_s=delay_s,
        )
        HANDLED.labels(durable, "failed").inc()
        await give_back((raw,), delay_s=delay_s)
    else:
        await ack((raw,))
        HANDLED.labels(durable, "done").inc()


async def _finish(connection: Connection, running: set[asyncio.Task[None]], finish_s: float) -> None:
    """Let handlers end, then see to it that their acknowledgements reach the server before the process goes."""
    if running:
        _, late = await asyncio.wait(set(running), timeout=finish_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
    await flush(connection)


async def flush(connection: Connection) -> None:
    """Wait until the server has read what was sent; says so in the log when it cannot be known."""
    if not connection.client.is_connected:
        return
    try:
        await connection.flush()
    except (NatsError, OSError, TimeoutError) as error:
        log.warning("bus.flush_failed", error=repr(error))
