"""Names on the bus: streams, buckets and subjects. No other module spells one."""

from __future__ import annotations

import zlib
from typing import Final
from urllib.parse import quote

EVENTS_STREAM: Final = "EVENTS"
PUBLIC_EVENTS_STREAM: Final = "PUBLIC_EVENTS"
"""The copy of the events in the account of the subscribers (``libs/events/accounts.py``)."""
LOGS_STREAM: Final = "LOGS"
SERVICE_LOG_STREAM: Final = "SERVICE_LOG"
"""Lines that the services have logged: for people, so nothing waits for it and no health depends on it."""
SERVICE_LOG_KEPT: Final = 25_000
"""Lines of all services together (docs/reference/platform.md 12)."""
ORDERS_BUCKET: Final = "ORDERS"
CAPACITY_BUCKET: Final = "CAPACITY"

EVENT_PREFIX: Final = "resolute.v1"
ALL_EVENTS: Final = f"{EVENT_PREFIX}.>"
ALL_LOGS: Final = "logs.>"
ALL_LOGS_STORED: Final = "resolute.logs.*.stored"
ALL_LOGS_REFUSED: Final = "resolute.logs.*.refused"
OBSERVER: Final = "scheduler-observations"
"""Durable consumer of the stream ``EVENTS``: observations wait in it for the next active scheduler."""
WEBHOOK_STATES: Final = "webhook-states"
WEBHOOK_EVENTS: Final = "webhook-events"
"""Durable consumers of the stream ``EVENTS`` for webhooks: of the states of experiments, and of everything."""
LOG_SHARDS: Final = 8
"""Number of log shards. All lines of a task share a shard, so one writer at a time stores them, in order."""


def token(ident: object) -> str:
    """An id as one token of a subject or key: letters, digits and ``-`` stay, ``.`` becomes ``_``, the rest ``=XX``.

    The result never contains a dot, a wildcard or white space. A literal ``_`` is escaped too, so that two ids never
    share a token.
    """
    text = str(ident)
    if text.isascii() and text.replace("-", "").replace(".", "").isalnum():
        return text.replace(".", "_")  # nearly all are, and a launcher asks for many
    return "".join(
        char if char.isascii() and (char.isalnum() or char == "-") else "_" if char == "." else _escaped(char)
        for char in text
    )


def _escaped(char: str) -> str:
    return "".join(f"={byte:02X}" for byte in char.encode())


def event(entity: str, ident: object, what: str) -> str:
    """Subject of an event: ``resolute.v1.<entity>.<id>.<what>``."""
    return f"{EVENT_PREFIX}.{entity}.{token(ident)}.{what}"


def event_source(cluster_id: str) -> str:
    """``source`` of the events of an installation as CloudEvents, on the bus and in webhooks."""
    return f"/resolute/{cluster_id}"


def observation_source(pool: str) -> str:
    """``source`` of what the launcher of a pool sees."""
    return f"/resolute/launcher/{quote(pool, safe='')}"


def events_of(entity: str, ident: object | None = None, what: str = "*") -> str:
    """Filter for the events of one entity, or of all of its kind when ``ident`` is None."""
    return f"{EVENT_PREFIX}.{entity}.{'*' if ident is None else token(ident)}.{what}"


def observed(pool: str, allocation: str) -> str:
    """Subject of what the launcher of a pool sees of an allocation: ``resolute.v1.allocation.<id>.observed.<pool>``.

    The pool is part of it because credentials are limited by subjects: no launcher can speak for another pool.
    """
    return f"{event('allocation', allocation, 'observed')}.{token(pool)}"


def observed_by(pool: str | None = None) -> str:
    """Filter for what the launcher of one pool sees, or that of any when ``pool`` is None."""
    return f"{events_of('allocation', what='observed')}.{'*' if pool is None else token(pool)}"


def order_key(pool: str, allocation: str) -> str:
    """Key of an order in the bucket ``ORDERS``: ``<pool>.<allocation>``."""
    return f"{token(pool)}.{token(allocation)}"


def orders_of(pool: str) -> str:
    """Filter for the keys of one pool's orders."""
    return f"{token(pool)}.*"


def placeholders_key(pool: str) -> str:
    """Key of the order of placeholders of a pool; no filter for the orders of allocations matches it."""
    return f"{token(pool)}.placeholders.wanted"


def capacity_key(pool: str) -> str:
    return token(pool)


def kv_subject(bucket: str, key: str) -> str:
    """Subject behind a key of a KV bucket (NATS ADR-8), for writers that publish instead of calling put."""
    return f"$KV.{bucket}.{key}"


def bucket_stream(bucket: str) -> str:
    """Stream behind a KV bucket (NATS ADR-8)."""
    return f"KV_{bucket}"


STREAMS: Final = (EVENTS_STREAM, LOGS_STREAM, bucket_stream(ORDERS_BUCKET), bucket_stream(CAPACITY_BUCKET))
"""Everything that the control plane keeps on the bus."""


def log_shard(task: str) -> int:
    return zlib.crc32(task.encode()) % LOG_SHARDS


def logs(task: str) -> str:
    """Subject of a log batch: ``logs.<shard>.<task>``."""
    return f"logs.{log_shard(task)}.{token(task)}"


def storage_check(stream: str) -> str:
    """Subject of each stream for messages that only show whether it stores them; nobody reads it."""
    return f"resolute.checks.{stream}"


def logs_of_launcher(pool: str, task: str) -> str:
    """Subject of a batch in which the launcher of a pool speaks: ``logs.<shard>.<task>.<pool>``.

    Whoever stores it looks whether the task is in the pool.
    """
    return f"{logs(task)}.{token(pool)}"


def logs_by_launcher(pool: str) -> str:
    """Filter for all batches in which the launcher of a pool speaks."""
    return f"logs.*.*.{token(pool)}"


def logs_of_shard(shard: int) -> str:
    """Filter for all batches of a shard, whoever speaks."""
    return f"logs.{shard}.>"


def logs_writer(shard: int) -> str:
    """Durable consumer that the writers of a shard share."""
    return f"logs-writer-{shard}"


def log_stored(task: str) -> str:
    """Core NATS subject (not kept) that tells followers of a task's logs to look again."""
    return f"resolute.logs.{token(task)}.stored"


def log_refused(task: str) -> str:
    """Core NATS subject (not kept) that tells writers that a log intake could not take lines of a task now."""
    return f"resolute.logs.{token(task)}.refused"


ALL_SERVICE_LINES: Final = "resolute.lines.*.*"


def service_lines(service: str, instance: str) -> str:
    """Subject of the lines that a process of a service logs: ``resolute.lines.<service>.<instance>``."""
    return f"resolute.lines.{service}.{token(instance)}"


def speaker_of(subject: str) -> str:
    """``<service>/<instance>`` of such a subject."""
    _, _, service, instance = subject.split(".")
    return f"{service}/{instance}"


def rpc(service: str, verb: str) -> str:
    return f"resolute.rpc.{service}.{verb}"


RECONCILE: Final = rpc("scheduler", "reconcile")
"""Subject of requests to the scheduler (``libs/events/reconcile_requests.py``)."""
CHECK_QUEUE: Final = rpc("scheduler", "check-queue")
"""Subject of questions to the scheduler, when a request would start (``libs/events/requests/queue_checks.py``)."""
NOTES_USE: Final = rpc("api", "notes-use")
"""Subject of requests to any api, answered when it could note that a task is in use. Without content."""


def launcher_rpc(pool: str, verb: str) -> str:
    """Subject of a request to the launcher of a pool (``libs/events/cluster_admin.py``)."""
    return rpc("launcher", f"{token(pool)}.{verb}")


def launcher_rpcs(pool: str) -> str:
    """Filter for all requests to the launcher of a pool."""
    return launcher_rpc(pool, "*")
