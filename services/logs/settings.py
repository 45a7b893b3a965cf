"""Settings of the logs service."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

from libs.bus.settings import BusSettings
from libs.db.connecting.settings import DatabaseSettings
from libs.serving.limits import HttpLimits
from libs.telemetry import TelemetrySettings

MIB = 2**20
DECODED_FACTOR: Final = 5
"""Memory that the records of a body take, in multiples of its size; lines of 20 bytes are the worst usual case."""


class IntakeTlsSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """HTTPS on a port of its own. The other one goes on with HTTP, for tasks that were started with its address."""

    cert: str | None = None
    """PEM file of the certificate, which is followed while it is renewed. None serves no HTTPS."""
    key: str | None = None
    """PEM file of its private key."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 8443
    """0 picks a free one."""

    def __post_init__(self) -> None:
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key must be given together")


class IntakeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    host: str = "0.0.0.0"  # noqa: S104  task pods post from everywhere
    """Address to listen on."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 8081
    """0 picks a free one."""
    max_body_bytes: Annotated[int, Meta(ge=MIB)] = 48 * MIB
    """Largest request, decompressed. A chunk of fluent-bit has 2 MB, and may become several times that as JSON."""
    memory_bytes: Annotated[int, Meta(ge=8 * MIB)] = 320 * MIB
    """What all requests together may occupy while they are taken apart; beyond it they wait for their turn."""
    received_bytes: Annotated[int, Meta(ge=MIB)] = 64 * MIB
    """What bodies may occupy as they come, before their turn; beyond it they are not read yet."""
    turn_wait_s: Annotated[float, Meta(ge=0)] = 10.0
    """How long a request waits for its turn before fluent-bit is asked to come again."""
    token_cache_s: Annotated[float, Meta(ge=0)] = 30.0
    """How long a token counts as known without looking again."""
    token_grace_s: Annotated[float, Meta(ge=0)] = 3600.0
    """How long after the end of its allocation a token still brings lines."""
    idle_connection_s: Annotated[int, Meta(ge=1)] = 75
    """When an idle connection is closed; fluent-bit should close first (its ``net.keepalive_idle_timeout``)."""
    tls: IntakeTlsSettings = IntakeTlsSettings()
    limits: HttpLimits = HttpLimits()
    """What a request may be, and how slow, before anybody knows whose it is."""

    def __post_init__(self) -> None:
        if self.memory_bytes < DECODED_FACTOR * self.max_body_bytes:
            raise ValueError(f"memory_bytes must be at least {DECODED_FACTOR} times max_body_bytes")
        if self.received_bytes < self.max_body_bytes:
            raise ValueError("received_bytes must be at least max_body_bytes")


class WriterSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str = ""
    """Tells replicas apart, and should stay over restarts; the host name when empty."""
    batch_messages: Annotated[int, Meta(ge=1)] = 64
    """Messages that one transaction stores at most; a message has up to half a megabyte."""
    linger_s: Annotated[float, Meta(ge=0)] = 0.02
    """How long a transaction waits for more than its first message."""
    gap_wait_s: Annotated[float, Meta(ge=0)] = 300.0
    """How long lines wait for those before them while nothing of these comes; longer than Kubernetes waits at most
    before it starts a container again, because fluent-bit keeps on disk what it has read."""
    gap_wait_ended_s: Annotated[float, Meta(ge=0)] = 30.0
    """The same when the allocation has ended at least this long ago."""
    parked_bytes: Annotated[int, Meta(ge=0)] = 2**30
    """What of one output of one container may wait on the disk of the database; beyond it the first gap is given up.
    At least what may lie unshipped in a pod, which is all that an outage can bring out of order."""
    heartbeat_s: Annotated[float, Meta(gt=0)] = 3.0
    """How often a writer says that it lives. After three silent ones the others take its shards."""


class RetentionSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    default_days: Annotated[int, Meta(ge=-1, le=32767)] | None = None
    """How long lines of ended tasks are kept, unless their experiment says otherwise; None or -1 is for ever."""
    interval_s: Annotated[float, Meta(gt=0)] = 3600.0
    """How often partitions are made and expired lines are deleted."""
    partitions_ahead: Annotated[int, Meta(ge=1)] = 3
    """Days for which partitions exist before they begin."""


class LogsSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    database: DatabaseSettings = DatabaseSettings()
    bus: BusSettings = BusSettings(name="resolute-logs")
    telemetry: TelemetrySettings = TelemetrySettings()
    intake: IntakeSettings = IntakeSettings()
    writer: WriterSettings = WriterSettings()
    retention: RetentionSettings = RetentionSettings()
