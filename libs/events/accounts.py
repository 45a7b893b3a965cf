"""The accounts of the bus: the control plane with its launchers, the subscribers, and what crosses between the two.

Whoever may make consumers of a stream may name another's, change it, and have messages delivered to any subject of the
account. So subscribers have an account of their own, with a copy of the public events that the server keeps up to date
and limits on what they can hold; nothing that they do there reaches the control plane. The server counts connections
and consumers by account, so subscribers that have a name get an account each: whoever reaches a limit is refused, and
the others are not. Subjects and limits are plain data in the words of the server's configuration, for whoever writes
one.
Source: https://docs.nats.io/running-a-nats-service/configuration/securing_nats/accounts; NATS ADR-1 (mirrors of streams
of other accounts).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from libs.events.subjects import ALL_EVENTS, EVENTS_STREAM, PUBLIC_EVENTS_STREAM

CONTROL_PLANE: Final = "RESOLUTE"
SUBSCRIBERS: Final = "SUBSCRIBERS"

COPY_API: Final = "subscribers.api"
"""Where the control plane reaches the JetStream API of the subscribers' account, as far as their copy is concerned."""
SUBSCRIBER_NAMES: Final = r"^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$"
"""Names that subscribers may have: labels as in DNS, of 32 characters at most."""
ORIGINAL_API: Final = "original.api"
"""Where the copy finds the JetStream API of its original; no subscriber may publish there."""
ORIGINAL_DELIVERY: Final = "original.events"
"""Prefix of the subjects on which the copy gets the messages of its original."""

SUBSCRIBERS_LIMITS: Final[Mapping[str, int]] = {"max_connections": 256, "max_subscriptions": 4096}
SUBSCRIBERS_JETSTREAM: Final[Mapping[str, int]] = {
    "max_memory": 64 * 2**20,
    "max_file": 16 * 2**30,
    "max_streams": 1,
    "max_consumers": 256,
}

_API: Final = "$JS.API"
_COPY_VERBS: Final = ("CREATE", "UPDATE", "INFO", "LEADER.STEPDOWN")
_COPY_ACTIONS: Final = tuple(f"STREAM.{verb}.{PUBLIC_EVENTS_STREAM}" for verb in _COPY_VERBS)
_READ_ORIGINAL: Final = f"CONSUMER.CREATE.{EVENTS_STREAM}.*.{ALL_EVENTS}"
_PACE: Final = f"$JS.FC.{EVENTS_STREAM}.>"
_DELIVERED: Final = f"{ORIGINAL_DELIVERY}.>"


def subscriber_account(name: str | None) -> str:
    """Account of the subscriber of this name; None is the one that every installation has."""
    return SUBSCRIBERS if name is None else f"{SUBSCRIBERS}-{name}"


def named_subscribers(account_names: Iterable[str]) -> list[str]:
    """Names of the subscribers that have one, of those whose accounts these are; sorted."""
    prefix = subscriber_account("")
    return sorted(each.removeprefix(prefix) for each in account_names if each.startswith(prefix))


def copy_api(name: str | None) -> str:
    """Where the control plane reaches the JetStream API of that account, as ``COPY_API``."""
    return COPY_API if name is None else f"{COPY_API}-{name}"


def accounts(
    *, control_plane: Sequence[Mapping[str, Any]], subscribers: Mapping[str | None, Sequence[Mapping[str, Any]]]
) -> dict[str, dict[str, Any]]:
    """The block ``accounts`` of the server's configuration, for these users.

    subscribers  name of the subscriber -> its users; None as in ``subscriber_account``
    """
    theirs = [subscriber_account(name) for name in subscribers]
    return {
        CONTROL_PLANE: {
            "jetstream": "enabled",
            "users": list(control_plane),
            "exports": [
                *({"stream": subject, "accounts": theirs} for subject in (ALL_EVENTS, _DELIVERED)),
                *({"service": subject, "accounts": theirs} for subject in (f"{_API}.{_READ_ORIGINAL}", _PACE)),
            ],
            "imports": [each for name in subscribers for each in copy_imports(name)],
        },
        **{subscriber_account(name): _of_subscriber(users) for name, users in subscribers.items()},
    }


def copy_imports(name: str | None) -> list[dict[str, Any]]:
    """What the control plane imports of the account of a subscriber: whatever concerns its copy."""
    return [
        {"service": _of(subscriber_account(name), f"{_API}.{action}"), "to": f"{copy_api(name)}.{action}"}
        for action in _COPY_ACTIONS
    ]


def _of_subscriber(users: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "jetstream": dict(SUBSCRIBERS_JETSTREAM),
        "limits": dict(SUBSCRIBERS_LIMITS),
        "users": list(users),
        "exports": [{"service": f"{_API}.{action}", "accounts": [CONTROL_PLANE]} for action in _COPY_ACTIONS],
        "imports": [
            *({"stream": _of(CONTROL_PLANE, subject)} for subject in (ALL_EVENTS, _DELIVERED)),
            {
                "service": _of(CONTROL_PLANE, f"{_API}.{_READ_ORIGINAL}"),
                "to": f"{ORIGINAL_API}.{_READ_ORIGINAL}",
            },
            {"service": _of(CONTROL_PLANE, _PACE)},
        ],
    }


def _of(account: str, subject: str) -> dict[str, str]:
    return {"account": account, "subject": subject}
