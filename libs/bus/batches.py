"""Batches of a work queue: strictly in order, one batch under way, acknowledged when the handler returns.

One process at a time works on a durable; others stand by and take over when it is gone. Order survives that, because
whoever takes over creates the consumer anew: the server then begins with the oldest message nobody acknowledged,
instead of continuing behind messages that the predecessor had in hand. A batch that fails is tried again, never
overtaken. A handler that takes longer than half a minute may see another process start on the same messages; what
either stores is in order by itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import structlog
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import ConsumerInfo
from nats.js.errors import APIError, NotFoundError

from libs.bus.availability import RESTART_PAUSE_S, retry_until_answered
from libs.bus.connection import Connection, apart
from libs.bus.consumer import HANDLED, LONGEST_BACKOFF_S, flush
from libs.bus.durables import watch_lag
from libs.bus.message import Message, ack, kept_alive, read
from libs.bus.pull import PullLostError, PullSession
from libs.errors import Unavailable
from libs.ids import new_uuid
from libs.retry import backoff_s
from libs.run_until_first_exits import run_until_first_exits

log = structlog.get_logger()

BatchHandler = Callable[[Sequence[Message]], Awaitable[None]]

STANDBY_S: Final = 2.0
"""How long a durable shows no sign of an owner before another process takes it over."""
STANDBY_LOOK_S: Final = 0.25

_OWNER: Final = "resolute-owner"
_EXISTS: Final = 10148
_NO_STREAM: Final = 10059


async def consume_batches(
    connection: Connection,
    *,
    stream: str,
    durable: str,
    filter: str,
    handler: BatchHandler,
    max_messages: int = 500,
    max_wait_s: float = 0.1,
    ack_wait_s: float = 60.0,
    finish_s: float = 10.0,
) -> None:
    """Give the messages that match ``filter`` to ``handler`` in batches; runs until cancelled.

    max_messages  largest batch
    max_wait_s    how long a batch waits for more after its first message
    finish_s      seconds the handler has to finish its batch after cancellation

    ``handler`` raising means that the same batch comes again, later each time, until it succeeds. After a crash or a
    takeover messages may come again, cut into other batches, but never out of order. Raises Unavailable only when the
    connection is closed for good.
    """
    owner = new_uuid()
    config = {
        "name": durable,
        "durable_name": durable,
        "filter_subject": filter,
        "ack_policy": "explicit",
        "deliver_policy": "all",
        "ack_wait": int(ack_wait_s * 10**9),
        "max_deliver": -1,
        "max_ack_pending": 2 * max_messages,
        "metadata": {_OWNER: owner},
    }
    work = _BatchWork(
        connection=connection,
        durable=durable,
        handler=handler,
        max_messages=max_messages,
        max_wait_s=max_wait_s,
        ack_wait_s=ack_wait_s,
        finish_s=finish_s,
    )
    try:
        while True:
            await _stand_by(connection, stream, durable, owner)
            if not await retry_until_answered(connection, stream, lambda: _take_over(connection, stream, config)):
                continue
            log.info("bus.batches_taken", durable=durable)
            try:
                async with PullSession(connection, stream=stream, consumer=durable) as session:
                    await run_until_first_exits(batches=work.run(session), lag=watch_lag(connection, stream, durable))
            except (PullLostError, NatsError, OSError) as error:
                log.info("bus.batches_interrupted", durable=durable, reason=str(error))
                await asyncio.sleep(RESTART_PAUSE_S)
    finally:
        await _hand_over(connection, stream, durable, owner)


class _BatchWork:
    """Collecting and handling of batches, as long as a session lasts."""

    def __init__(
        self,
        *,
        connection: Connection,
        durable: str,
        handler: BatchHandler,
        max_messages: int,
        max_wait_s: float,
        ack_wait_s: float,
        finish_s: float,
    ) -> None:
        self._connection = connection
        self._durable = durable
        self._handler = handler
        self._max_messages = max_messages
        self._max_wait_s = max_wait_s
        self._ack_wait_s = ack_wait_s
        self._finish_s = finish_s

    async def run(self, session: PullSession) -> None:
        done = 0  # sequence up to which everything is acknowledged
        while True:
            raws = await self._collect(session, done)
            if session.open == 0:
                # An open request is what others see of us while the handler runs.
                await session.pull(self._max_messages)
            await self._finish_even_if_cancelled(raws)
            done = raws[-1].metadata.sequence.stream

    async def _collect(self, session: PullSession, done: int) -> list[Msg]:
        """The next messages in order, at least one: up to ``max_messages``, or what comes in ``max_wait_s``."""
        raws: list[Msg] = []
        loop = asyncio.get_running_loop()
        deadline: float | None = None
        while len(raws) < self._max_messages:
            if session.open == 0 and not session.has_arrived():
                await session.pull(self._max_messages)
            try:
                async with asyncio.timeout_at(deadline):
                    raw = await session.next()
            except TimeoutError:
                break
            if raw is None:
                continue
            sequence = raw.metadata.sequence.stream
            if sequence <= done:
                await ack((raw,))  # its acknowledgement was lost
                continue
            if raws and sequence <= raws[-1].metadata.sequence.stream:
                continue  # came again because it had waited here for long; it is in this batch already
            raws.append(raw)
            if deadline is None:
                deadline = loop.time() + self._max_wait_s
        return raws

    async def _finish_even_if_cancelled(self, raws: Sequence[Msg]) -> None:
        task = asyncio.create_task(self._handle(raws), name=f"{self._durable} batch")
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task}, timeout=self._finish_s)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            raise

    async def _handle(self, raws: Sequence[Msg]) -> None:
        messages = [read(raw) for raw in raws]
        attempt = 0
        async with kept_alive(raws, ack_wait_s=self._ack_wait_s):
            while True:
                attempt += 1
                try:
                    await self._handler(messages)
                    break
                except Exception:
                    delay_s = backoff_s(attempt, longest_s=LONGEST_BACKOFF_S)
                    log.exception(
                        "bus.batch_failed",
                        durable=self._durable,
                        messages=len(messages),
                        first=messages[0].sequence,
                        attempt=attempt,
                        retry_s=delay_s,
                    )
                    HANDLED.labels(self._durable, "failed").inc(len(messages))
                    await asyncio.sleep(delay_s)
        await ack(raws)
        HANDLED.labels(self._durable, "done").inc(len(messages))


async def _stand_by(connection: Connection, stream: str, durable: str, owner: str) -> None:
    """Return when nobody owns ``durable``, or its owner shows no sign of life, or it is ours."""
    loop = asyncio.get_running_loop()
    seen: object = None
    quiet_since = loop.time()
    while True:
        info = await retry_until_answered(connection, stream, lambda: _find(connection, stream, durable))
        if info is None or (info.config.metadata or {}).get(_OWNER) in (None, owner):
            return
        progress = (info.created, info.delivered and info.delivered.consumer_seq)
        if info.num_waiting or progress != seen:
            quiet_since = loop.time()
        elif loop.time() - quiet_since >= STANDBY_S:
            return
        seen = progress
        await asyncio.sleep(STANDBY_LOOK_S)


async def _find(connection: Connection, stream: str, durable: str) -> ConsumerInfo | None:
    try:
        info: ConsumerInfo = await apart(connection.jetstream.consumer_info(stream, durable))
    except NotFoundError as error:
        if error.err_code == _NO_STREAM:  # the stream is what is missing
            raise
        return None
    return info


async def _take_over(connection: Connection, stream: str, config: dict[str, Any]) -> bool:
    """Replace the consumer by one of our own; False when somebody else did so at the same time."""
    durable = config["name"]
    try:
        await connection.jetstream.delete_consumer(stream, durable)
    except NotFoundError as error:
        if error.err_code == _NO_STREAM:
            raise
    # The client library creates or updates; only ``create`` leaves one winner of two that take over at once.
    reply = await connection.client.request(
        f"$JS.API.CONSUMER.CREATE.{stream}.{durable}.{config['filter_subject']}",
        json.dumps({"stream_name": stream, "config": config, "action": "create"}).encode(),
        timeout=connection.settings.request_timeout_s,
    )
    failure = json.loads(reply.data).get("error")
    if failure is None:
        return True
    if failure.get("err_code") == _EXISTS:
        return False
    raise APIError(**failure)


async def _hand_over(connection: Connection, stream: str, durable: str, owner: str) -> None:
    """Let a process that stands by take over at once instead of waiting for our silence."""
    await flush(connection)
    if not connection.client.is_connected:
        return
    try:
        info = await _find(connection, stream, durable)
        if info is not None and (info.config.metadata or {}).get(_OWNER) == owner:
            await apart(connection.jetstream.delete_consumer(stream, durable))
    except (NatsError, OSError, Unavailable) as error:
        log.debug("bus.hand_over_failed", durable=durable, error=repr(error))
