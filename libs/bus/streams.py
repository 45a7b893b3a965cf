"""Streams and buckets of the bus, and how long they keep what.

Any service that may do so creates them, as often as it likes: the calls are idempotent, and a server that lost its disk
has its streams back with the next reconnect or publish. Postgres is the truth; what the streams held is derived.
"""

from __future__ import annotations

from typing import Final

import structlog
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.api import (
    DiscardPolicy,
    ExternalStream,
    RetentionPolicy,
    StorageType,
    StreamConfig,
    StreamConsumerLimits,
    StreamSource,
)
from nats.js.errors import APIError

from libs.bus.connection import Connection, apart
from libs.bus.settings import BusSettings
from libs.errors import Unavailable
from libs.events import accounts, subjects

log = structlog.get_logger()

EVENTS_KEPT_S: Final = 7 * 24 * 3600
DUPLICATES_KNOWN_S: Final = 120
SERVICE_LOG_BYTES: Final = 64 * 2**20
DELETIONS_KEPT_S: Final = 3600
"""How long the deletion of a key can be watched. Later a watcher learns it from a snapshot without the key."""

_NAME_IN_USE: Final = 10058
_BUCKETS: Final = subjects.bucket_stream("")


def stream_configs(settings: BusSettings) -> tuple[StreamConfig, ...]:
    """Everything the bus keeps."""
    return (
        StreamConfig(
            name=subjects.EVENTS_STREAM,
            subjects=[subjects.ALL_EVENTS],
            retention=RetentionPolicy.LIMITS,
            storage=StorageType.FILE,
            max_age=EVENTS_KEPT_S,
            duplicate_window=DUPLICATES_KNOWN_S,
            num_replicas=settings.replicas,
            allow_direct=True,
        ),
        StreamConfig(
            name=subjects.LOGS_STREAM,
            subjects=[subjects.ALL_LOGS],
            retention=RetentionPolicy.WORK_QUEUE,
            storage=StorageType.FILE,
            max_bytes=settings.logs_max_bytes,
            # A full stream refuses instead of forgetting: the intake tells fluent-bit, and that keeps the lines.
            discard=DiscardPolicy.NEW,
            duplicate_window=DUPLICATES_KNOWN_S,
            num_replicas=settings.replicas,
        ),
        StreamConfig(
            name=subjects.SERVICE_LOG_STREAM,
            subjects=[subjects.ALL_SERVICE_LINES],
            retention=RetentionPolicy.LIMITS,
            storage=StorageType.FILE,
            max_msgs=subjects.SERVICE_LOG_KEPT,
            max_bytes=SERVICE_LOG_BYTES,
            max_age=EVENTS_KEPT_S,
            duplicate_window=DUPLICATES_KNOWN_S,
            num_replicas=settings.replicas,
        ),
        _bucket(subjects.ORDERS_BUCKET, settings),
        _bucket(subjects.CAPACITY_BUCKET, settings),
    )


def checked_streams(connection: Connection) -> tuple[str, ...]:
    """Streams that take messages which only show whether they are stored, and forget them by themselves."""
    return tuple(name for name in subjects.STREAMS if knows_ttl(connection) or name.startswith(_BUCKETS))


def _bucket(name: str, settings: BusSettings) -> StreamConfig:
    """A KV bucket with one value per key, as NATS ADR-8 lays it out."""
    return StreamConfig(
        name=subjects.bucket_stream(name),
        subjects=[subjects.kv_subject(name, ">")],
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        max_msgs_per_subject=1,
        discard=DiscardPolicy.NEW,
        duplicate_window=DUPLICATES_KNOWN_S,
        num_replicas=settings.replicas,
        allow_rollup_hdrs=True,
        allow_direct=True,
        deny_delete=True,
    )


def public_events_config(settings: BusSettings) -> StreamConfig:
    """The copy of the public events in the account of the subscribers; the server keeps it up to date.

    A consumer that nobody uses is forgotten when it could not continue where it was anyway.
    """
    return StreamConfig(
        name=subjects.PUBLIC_EVENTS_STREAM,
        mirror=StreamSource(
            name=subjects.EVENTS_STREAM,
            filter_subject=subjects.ALL_EVENTS,
            external=ExternalStream(api=accounts.ORIGINAL_API, deliver=accounts.ORIGINAL_DELIVERY),
        ),
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        max_age=EVENTS_KEPT_S,
        consumer_limits=StreamConsumerLimits(inactive_threshold=EVENTS_KEPT_S),
        num_replicas=settings.replicas,
    )


async def ensure_streams(connection: Connection) -> None:
    """Create or update every stream and bucket; safe to call concurrently from anywhere.

    Raises Unavailable when the server does not answer, or refuses (as when it has too few members for ``replicas``).
    Copies of subscribers that have a name are not waited for: nothing of the control plane needs them.
    """
    settings = connection.settings
    await connection.wait_connected(settings.request_timeout_s)
    checked = checked_streams(connection)
    for config in stream_configs(settings):
        # Deletions leave markers; servers that can (2.11) forget them after DELETIONS_KEPT_S.
        config.allow_msg_ttl = knows_ttl(connection) or None
        if config.name in checked:
            config.subjects = [*(config.subjects or ()), subjects.storage_check(config.name)]
        await _ensure_stream(connection.jetstream, config)
    if settings.copy_events:
        await _ensure_copy(connection, None)
        for name in settings.subscribers:
            try:
                await _ensure_copy(connection, name)
            except Unavailable as error:
                # A server that does not know the account yet is started anew for it, and this is done again then.
                log.warning("bus.no_copy", subscriber=name, error=str(error))


async def _ensure_copy(connection: Connection, subscriber: str | None) -> None:
    settings = connection.settings
    prefix = accounts.copy_api(subscriber)
    theirs = JetStreamContext(connection.client, prefix=prefix, timeout=settings.request_timeout_s)
    await _ensure_stream(theirs, public_events_config(settings))


async def _ensure_stream(jetstream: JetStreamContext, config: StreamConfig) -> None:
    try:
        await apart(_add_or_update(jetstream, config))
    except (NatsError, OSError) as error:
        raise Unavailable(f"the bus could not provide {config.name}: {error}") from error


async def _add_or_update(jetstream: JetStreamContext, config: StreamConfig) -> None:
    try:
        await jetstream.add_stream(config)
    except APIError as error:
        if error.err_code != _NAME_IN_USE:
            raise
        await jetstream.update_stream(config)
        log.info("bus.stream_updated", stream=config.name)


def knows_ttl(connection: Connection) -> bool:
    """Whether the server expires single messages (NATS 2.11)."""
    version = connection.client.connected_server_version
    return (version.major, version.minor) >= (2, 11)
