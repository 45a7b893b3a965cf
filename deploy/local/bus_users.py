"""Who may connect to the bus of this machine: the services, the launcher of each pool, and subscribers to events.

Services and launchers have generated passwords, kept in one file that only the owner of the state folder may read.
Whoever connects without one is a subscriber, so that on this machine a NATS client is all it takes to see events.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Final

from deploy.local.layout import Layout, Options, write_private
from libs.events.permissions import (
    SERVICES_INBOX,
    Permissions,
    launcher_inbox,
    launcher_permissions,
    subscriber_permissions,
)
from libs.events.subjects import token

SERVICES: Final = "services"
SUBSCRIBER: Final = "events"


def launcher_user(pool: str) -> str:
    return f"launcher-{token(pool)}"


def passwords(layout: Layout, pools: Iterable[str]) -> dict[str, str]:
    """Password of every user: those kept from before, and new ones for users that had none."""
    kept = _kept(layout)
    wanted = (SERVICES, SUBSCRIBER, *(launcher_user(pool) for pool in pools))
    missing = {user: secrets.token_urlsafe(24) for user in wanted if user not in kept}
    if missing:
        kept |= missing
        write_private(layout.bus_users, json.dumps(kept, indent=2) + "\n")
    return kept


def authorization(password_of: Mapping[str, str], pools: Iterable[str]) -> str:
    """The block of the server's configuration. Everything in it is JSON, which that format understands."""
    users = [
        {"user": SERVICES, "password": password_of[SERVICES]},
        _restricted(SUBSCRIBER, password_of, subscriber_permissions()),
        *(_restricted(launcher_user(pool), password_of, launcher_permissions(pool)) for pool in pools),
    ]
    return f"authorization: {json.dumps({'users': users}, indent=2)}\nno_auth_user: {SUBSCRIBER}\n"


def services_bus(layout: Layout, options: Options, name: str) -> dict[str, Any]:
    """The section ``bus`` in the settings of a service of the control plane."""
    return {**_bus(layout, options, SERVICES, name), "inbox_prefix": SERVICES_INBOX}


def launcher_bus(layout: Layout, options: Options, pool: str) -> dict[str, Any]:
    """The section ``bus`` in the settings of the launcher of a pool."""
    return {
        **_bus(layout, options, launcher_user(pool), f"launcher-{pool}"),
        "inbox_prefix": launcher_inbox(pool),
        "manage_streams": False,
    }


def subscriber_bus(options: Options, name: str) -> dict[str, Any]:
    """Settings of the bus for whoever only listens to events."""
    return {"url": subscriber_url(options), "name": name, "manage_streams": False}


def subscriber_url(options: Options) -> str:
    """All that a NATS client needs to listen to events."""
    return f"nats://127.0.0.1:{options.nats_port}"


def _bus(layout: Layout, options: Options, user: str, name: str) -> dict[str, Any]:
    return {"url": subscriber_url(options), "name": name, "user": user, "password": _kept(layout)[user]}


def _kept(layout: Layout) -> dict[str, str]:
    try:
        kept: dict[str, str] = json.loads(layout.bus_users.read_text())
    except FileNotFoundError:
        return {}
    return kept


def _restricted(user: str, password_of: Mapping[str, str], permissions: Permissions) -> dict[str, Any]:
    return {
        "user": user,
        "password": password_of[user],
        "permissions": {
            "publish": {"allow": permissions.publish, "deny": permissions.not_publish},
            "subscribe": {"allow": permissions.subscribe},
            **({"allow_responses": True} if permissions.answers else {}),
        },
    }
