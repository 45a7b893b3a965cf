"""The accounts of the bus: the control plane with its launchers, the subscribers, and what crosses between the two.

Whoever may make consumers of a stream may name another's, change it, and have messages delivered to any subject of the
account. So subscribers have an account of their own, with a copy of the public events that the server keeps up to date
and limits on what they can hold; nothing that they do there reaches the control plane. Subjects and limits are plain
data in the words of the server's configuration, for whoever writes one.
Source: https://docs.nats.io/running-a-nats-service/configuration/securing_nats/accounts; NATS ADR-1 (mirrors of streams
of other accounts).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from libs.events.subjects import ALL_EVENTS, EVENTS_STREAM, PUBLIC_EVENTS_STREAM

CONTROL_PLANE: Final = "RESOLUTE"
SUBSCRIBERS: Final = "SUBSCRIBERS"

COPY_API: Final = "subscribers.api"
"""Where the control plane reaches the JetStream API of the subscribers' account, as far as their copy is concerned."""
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


def accounts(
    *, control_plane: Sequence[Mapping[str, Any]], subscribers: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The block ``accounts`` of the server's configuration, for these users of the two."""
    return {
        CONTROL_PLANE: {
            "jetstream": "enabled",
            "users": list(control_plane),
            "exports": [
                *({"stream": subject, "accounts": [SUBSCRIBERS]} for subject in (ALL_EVENTS, _DELIVERED)),
                *({"service": subject, "accounts": [SUBSCRIBERS]} for subject in (f"{_API}.{_READ_ORIGINAL}", _PACE)),
            ],
            "imports": [
                {"service": _of(SUBSCRIBERS, f"{_API}.{action}"), "to": f"{COPY_API}.{action}"}
                for action in _COPY_ACTIONS
            ],
        },
        SUBSCRIBERS: {
            "jetstream": dict(SUBSCRIBERS_JETSTREAM),
            "limits": dict(SUBSCRIBERS_LIMITS),
            "users": list(subscribers),
            "exports": [{"service": f"{_API}.{action}", "accounts": [CONTROL_PLANE]} for action in _COPY_ACTIONS],
            "imports": [
                *({"stream": _of(CONTROL_PLANE, subject)} for subject in (ALL_EVENTS, _DELIVERED)),
                {
                    "service": _of(CONTROL_PLANE, f"{_API}.{_READ_ORIGINAL}"),
                    "to": f"{ORIGINAL_API}.{_READ_ORIGINAL}",
                },
                {"service": _of(CONTROL_PLANE, _PACE)},
            ],
        },
    }


def _of(account: str, subject: str) -> dict[str, str]:
    return {"account": account, "subject": subject}
