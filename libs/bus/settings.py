"""Settings with which a service reaches the bus."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from libs.events.accounts import SUBSCRIBER_NAMES

SubscriberName = Annotated[str, Meta(pattern=SUBSCRIBER_NAMES)]


class BusSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: str = "nats://127.0.0.1:4222"
    """Servers of the bus, separated by commas; ``tls://`` encrypts."""
    name: str = "resolute"
    """Shown in the connection list of the server."""
    user: str | None = None
    """Name of this service on the bus."""
    password: str | None = None
    """Of ``user``."""
    password_file: str | None = None
    """File with the password, read for each new connection, so that a new password needs no restart; wins."""
    token: str | None = None
    """In place of ``user``, for servers that want one."""
    credentials_file: str | None = None
    """A NATS ``.creds`` file with JWT and seed, read for each new connection; wins over user and token."""
    ca_file: str | None = None
    """Certificates that sign the server's, read again whenever a connection is lost or fails; without it those of the
    operating system count."""
    inbox_prefix: str = "_INBOX"
    """First tokens of reply subjects. Give each restricted user its own, so that it cannot read replies to others."""
    manage_streams: bool = True
    """Whether this service may create streams and buckets. A launcher may not, and waits until they exist."""
    copy_events: bool = False
    """Whether subscribers have an account of their own, as ``libs/events/accounts.py`` describes it: whoever manages
    streams then keeps a copy of the public events there."""
    subscribers: tuple[SubscriberName, ...] = ()
    """Names of further subscribers, each with an account and a copy of its own."""
    replicas: Annotated[int, Meta(ge=1, le=5)] = 1
    """Copies of each stream; 3 on a cluster of three servers."""
    logs_max_bytes: Annotated[int, Meta(ge=1)] = 4 * 2**30
    """Log lines waiting to be stored. When it is full the intake refuses, and lines wait in the task pods."""
    connect_timeout_s: Annotated[float, Meta(gt=0)] = 60.0
    """How long a service waits for the bus when it starts; afterwards it reconnects for ever."""
    request_timeout_s: Annotated[float, Meta(gt=0)] = 5.0
    """How long a publish waits for its acknowledgement, and any other call for its answer."""
