"""The group of peers in an all-gather, and whether it is complete (docs/reference/harness-protocol.md 12.1). Pure.

The members are rows, so a group outlives the replica that a peer has reached, and peers may come to different ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

STALE_AFTER: Final = timedelta(seconds=35)
"""Requests that wait refresh their membership about every ten seconds; this much later nobody waits for it any more."""
SLOW_AFTER: Final = timedelta(minutes=10)
"""When the owner of the task is told that its pods do not find together."""


class Member(Struct, frozen=True, kw_only=True):
    """A peer that has joined.

    holder     the request that waits for it; a later request with the same uuid takes the membership over
    num_peers  how many make the group complete, the same for all: what the last that joined has said
    noted_at   when the owner of the task was told that it takes long
    gathered   what all members of the group brought, once it was complete; such a member belongs to no open group
    """

    request_uuid: str
    holder: str
    num_peers: int
    data: Any
    joined_at: datetime
    seen_at: datetime
    noted_at: datetime | None = None
    gathered: list[Any] | None = None


def open_group(members: Iterable[Member]) -> list[Member]:
    """Those who still wait for each other; whoever comes after a group was complete begins the next."""
    return [member for member in members if member.gathered is None]


def answer_of(members: Iterable[Member], request_uuid: str) -> list[Any] | None:
    """What the group of a peer has gathered; None while it is not complete, and for a stranger."""
    return next((member.gathered for member in members if member.request_uuid == request_uuid), None)


def is_complete(members: Sequence[Member]) -> bool:
    """Whether all peers of an open group are there."""
    return bool(members) and len(members) >= members[0].num_peers


def abandoned(members: Sequence[Member], now: datetime) -> list[Member]:
    """Members for whom no request waits any more, as after the death of a replica; none of a complete group."""
    if is_complete(members):
        return []
    return [member for member in members if now - member.seen_at > STALE_AFTER]


def is_slow(members: Iterable[Member], now: datetime) -> bool:
    """Whether somebody has waited for the others so long that it should be said, and was not."""
    members = tuple(members)
    return all(member.noted_at is None for member in members) and any(
        now - member.joined_at >= SLOW_AFTER for member in members
    )


def first_address(members: Iterable[Member]) -> str | None:
    """The address of rank 0, which is the peer whose uuid sorts first; None when it gave none."""
    first = min(members, key=lambda member: member.request_uuid)
    address = first.data.get("rendezvous_ip") if isinstance(first.data, dict) else None
    return address if isinstance(address, str) and address else None
