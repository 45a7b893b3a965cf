"""Users of the bus of this machine: the services, the launcher of each pool, and subscribers to events.

All have generated passwords, kept in one file that only the owner of the state folder may read. What a subscriber needs
stands in a file of its own, which the owner may give away.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from deploy.local.failure import CannotStart
from deploy.local.layout import Layout, Options, read_kept, write_private
from deploy.local.supervision.bus_check import StorageCheck
from deploy.nats_configuration import SERVICES, SUPERVISOR, launcher_user, subscriber_user
from libs.events.permissions import SERVICES_INBOX, SUPERVISOR_INBOX, launcher_inbox
from libs.events.subjects import STREAMS
from libs.events.subjects import storage_check as storage_check_of


def passwords(layout: Layout, options: Options, pools: Iterable[str]) -> dict[str, str]:
    """Password of every user: those kept from before, and new ones for users that had none."""
    kept: dict[str, str] = read_kept(layout.bus_users)
    subscribers = map(subscriber_user, (None, *options.subscribers))
    wanted = (SERVICES, *subscribers, SUPERVISOR, *(launcher_user(pool) for pool in pools))
    missing = {user: secrets.token_urlsafe(24) for user in wanted if user not in kept}
    if missing:
        kept |= missing
        write_private(layout.bus_users, json.dumps(kept, indent=2) + "\n")
    return kept


def services_bus(layout: Layout, options: Options, name: str) -> dict[str, Any]:
    """The section ``bus`` in the settings of a service of the control plane."""
    return {
        **_bus(layout, options, SERVICES, name),
        "inbox_prefix": SERVICES_INBOX,
        "copy_events": True,
        "subscribers": list(options.subscribers),
    }


def launcher_bus(layout: Layout, options: Options, pool: str) -> dict[str, Any]:
    """The section ``bus`` in the settings of the launcher of a pool."""
    return {
        **_bus(layout, options, launcher_user(pool), f"launcher-{pool}"),
        "inbox_prefix": launcher_inbox(pool),
        "manage_streams": False,
    }


def storage_check(layout: Layout, options: Options, *, directory: Path) -> StorageCheck:
    """How to see whether the bus stores what it is given below ``directory``."""
    return StorageCheck(
        port=options.nats_port,
        user=SUPERVISOR,
        password=read_kept(layout.bus_users)[SUPERVISOR],
        inbox=SUPERVISOR_INBOX,
        subjects={stream: storage_check_of(stream) for stream in STREAMS},
        directory=str(directory),
    )


def write_credentials(layout: Layout, options: Options) -> None:
    """Write what each subscriber needs: address, user and password."""
    password_of = read_kept(layout.bus_users)
    for name in (None, *options.subscribers):
        user = subscriber_user(name)
        path = layout.subscriber if name is None else layout.named_subscriber(name)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        credentials = {"url": url(options), "user": user, "password": password_of[user]}
        write_private(path, json.dumps(credentials, indent=2) + "\n")


def subscriber_bus(layout: Layout, name: str) -> dict[str, Any]:
    """Settings of the bus for whoever only listens to events. Raises CannotStart when the credentials are missing."""
    try:
        credentials: dict[str, Any] = json.loads(layout.subscriber.read_text())
    except OSError as error:
        raise CannotStart(f"{layout.subscriber}, which `resolute up` writes: {error.strerror}") from error
    return {**credentials, "name": name, "manage_streams": False}


def url(options: Options) -> str:
    """Address of the bus."""
    return f"nats://127.0.0.1:{options.nats_port}"


def _bus(layout: Layout, options: Options, user: str, name: str) -> dict[str, Any]:
    return {"url": url(options), "name": name, "user": user, "password": read_kept(layout.bus_users)[user]}
