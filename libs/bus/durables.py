"""Definition of a durable consumer, a watch that it stays as it was made, and one of how far behind it is.

Its definition is a fact on the server, which somebody may have changed while nobody looked: another filter, a pause, a
deletion. Messages may have passed by then. So whoever works with one compares, makes it right, and reports a gap
(docs/architecture.md 3, rule 2).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import structlog
from msgspec import Struct
from nats.errors import Error as NatsError
from nats.js.api import ConsumerConfig
from nats.js.errors import APIError, NotFoundError

from libs.bus.connection import Connection, apart
from libs.telemetry import gauge

log = structlog.get_logger()

LOOK_EVERY_S: Final = 10.0
PENDING: Final = gauge(
    "resolute_bus_consumer_pending",
    "Messages that a durable consumer has not finished, as the process that works for it sees them",
    "stream",
    "durable",
)

_NOT_CHANGED: Final = 10012
_GIVEN_BY_SERVER: Final = frozenset({"replay_policy", "max_waiting", "max_ack_pending", "num_replicas", "metadata"})


class Definition(Struct, frozen=True):
    """What the server has: when the consumer was made, and with which configuration."""

    created: str
    config: dict[str, Any]


async def provide(connection: Connection, stream: str, config: ConsumerConfig) -> Definition:
    """Create the consumer, or make the present one as ``config`` says; one that cannot be changed is replaced.

    Raises what the client library raises.
    """
    assert config.name is not None
    try:
        await connection.jetstream.add_consumer(stream, config)
        found = await look(connection, stream, config.name)
    except APIError as error:
        if error.err_code != _NOT_CHANGED:
            raise
        log.warning("bus.consumer_not_changed", durable=config.name, reason=error.description)
    else:
        if is_as_wanted(found.config, config.as_dict()):
            return found
    log.warning("bus.consumer_replaced", durable=config.name)
    await connection.jetstream.delete_consumer(stream, config.name)
    await connection.jetstream.add_consumer(stream, config)
    return await look(connection, stream, config.name)


async def look(connection: Connection, stream: str, durable: str) -> Definition:
    """The consumer as the server has it, with what the client library does not know. Raises what that raises."""
    reply = await connection.client.request(
        f"$JS.API.CONSUMER.INFO.{stream}.{durable}", timeout=connection.settings.request_timeout_s
    )
    answer = json.loads(reply.data)
    if "error" in answer:
        raise APIError.from_error(answer["error"])
    return Definition(answer["created"], answer["config"])


def is_as_wanted(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a configuration says what was asked for, and nothing else but the server's own."""
    said = {name: value for name, value in wanted.items() if value}  # the server leaves out what says nothing
    return (
        all(found.get(name) == value for name, value in said.items()) and found.keys() <= said.keys() | _GIVEN_BY_SERVER
    )


async def until_changed(connection: Connection, stream: str, durable: str, definition: Definition) -> None:
    """Return when the server has another definition, or none. A server that does not answer is for others to notice."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        try:
            found = await apart(look(connection, stream, durable))
        except NotFoundError:
            return
        except (NatsError, OSError) as error:
            log.debug("bus.consumer_not_seen", durable=durable, error=repr(error))
            continue
        if found != definition:
            return


async def watch_lag(connection: Connection, stream: str, durable: str) -> None:
    """Keep the metric of a consumer up to date while this process works for it; until cancelled."""
    pending = PENDING.labels(stream, durable)
    try:
        while True:
            try:
                info = await apart(connection.jetstream.consumer_info(stream, durable))
            except (NatsError, OSError) as error:
                log.debug("bus.consumer_not_seen", durable=durable, error=repr(error))
            else:
                pending.set((info.num_pending or 0) + (info.num_ack_pending or 0))
            await asyncio.sleep(LOOK_EVERY_S)
    finally:
        PENDING.remove(stream, durable)
