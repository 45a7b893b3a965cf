"""Permissions of each user of the bus: the subjects that it may publish and subscribe to, as the server takes them.

The services of the control plane are trusted and need no entry here. A launcher is not (docs/architecture.md 3, rule
6): it reads the orders of its own pool and speaks for its own pool. Whoever only listens reads events, in an account of
its own (``libs/events/accounts.py``). Replies and streamed messages arrive on inboxes, which everybody who may
subscribe to them can read, so each user has a prefix of its own. Source:
https://docs.nats.io/running-a-nats-service/configuration/securing_nats/authorization; NATS ADR-13, ADR-17.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from libs.events import subjects

SERVICES_INBOX: Final = "_INBOX_services"
"""Prefix for the services of the control plane, whose replies carry tokens: nobody else may subscribe to it."""
SUBSCRIBERS_INBOX: Final = "_INBOX"
"""What clients use unless told otherwise."""
SUPERVISOR_INBOX: Final = "_INBOX_supervisor"

OWN_RIGHTS: Final = "$SYS.REQ.USER.INFO"
"""Where the server tells a user its own rights, and nobody else's: ``resolute doctor`` compares them with these."""

_API: Final = "$JS.API"
_ORDERS: Final = subjects.bucket_stream(subjects.ORDERS_BUCKET)
_PUBLIC: Final = subjects.PUBLIC_EVENTS_STREAM


@dataclass(frozen=True, kw_only=True)
class Permissions:
    """Subjects with NATS wildcards; what is not listed is refused."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    answers: bool = False
    """Whether it may answer, once, on the reply subject of whatever it receives (``allow_responses``)."""


def launcher_inbox(pool: str) -> str:
    """Inbox prefix of the launcher of a pool, for ``BusSettings.inbox_prefix``."""
    return f"_INBOX_launcher_{subjects.token(pool)}"


def launcher_permissions(pool: str) -> Permissions:
    """What the launcher of a pool needs: orders, capacity, observations, lines of tasks and its own, requests; all of
    its pool only.

    It makes a consumer for each watch, with a random name, and could read those of others only by guessing theirs.
    """
    orders = subjects.kv_subject(subjects.ORDERS_BUCKET, subjects.orders_of(pool))
    placeholders = subjects.kv_subject(subjects.ORDERS_BUCKET, subjects.placeholders_key(pool))
    return Permissions(
        publish=(
            f"{_API}.CONSUMER.CREATE.{_ORDERS}.*.{orders}",
            f"{_API}.CONSUMER.CREATE.{_ORDERS}.*.{placeholders}",
            f"{_API}.CONSUMER.MSG.NEXT.{_ORDERS}.*",
            subjects.kv_subject(subjects.CAPACITY_BUCKET, subjects.capacity_key(pool)),
            subjects.observed_by(pool),
            subjects.logs_by_launcher(pool),
            subjects.service_lines("launcher", pool),
            OWN_RIGHTS,
        ),
        subscribe=(f"{launcher_inbox(pool)}.>", subjects.launcher_rpcs(pool)),
        answers=True,
    )


def supervisor_permissions() -> Permissions:
    """What is needed to see whether the bus stores what it is given, and no more."""
    return Permissions(publish=(subjects.storage_check("*"), OWN_RIGHTS), subscribe=(f"{SUPERVISOR_INBOX}.>",))


def subscriber_permissions() -> Permissions:
    """What outside subscribers need: events as they happen, and those that are kept, with consumers of any kind.

    For users of the account of the subscribers: of the stream of the control plane they see a copy. The calls that list
    streams and consumers show what is in their own account, and programs for people and dashboards begin with them.
    """
    return Permissions(
        publish=(
            f"{_API}.INFO",
            f"{_API}.STREAM.NAMES",
            f"{_API}.STREAM.LIST",
            f"{_API}.STREAM.INFO.*",
            f"{_API}.STREAM.MSG.GET.{_PUBLIC}",
            f"{_API}.CONSUMER.NAMES.{_PUBLIC}",
            f"{_API}.CONSUMER.LIST.{_PUBLIC}",
            f"{_API}.CONSUMER.CREATE.{_PUBLIC}",
            f"{_API}.CONSUMER.CREATE.{_PUBLIC}.>",
            f"{_API}.CONSUMER.DURABLE.CREATE.{_PUBLIC}.*",
            f"{_API}.CONSUMER.INFO.{_PUBLIC}.*",
            f"{_API}.CONSUMER.DELETE.{_PUBLIC}.*",
            f"{_API}.CONSUMER.MSG.NEXT.{_PUBLIC}.*",
            f"$JS.ACK.{_PUBLIC}.>",
            f"$JS.FC.{_PUBLIC}.>",
            OWN_RIGHTS,
        ),
        subscribe=(subjects.ALL_EVENTS, f"{SUBSCRIBERS_INBOX}.>"),
    )
