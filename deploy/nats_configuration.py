"""The configuration of the NATS server: what it takes and keeps, and who may say and hear what.

The same wherever the server runs. Values are JSON, which the format of NATS understands.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from libs.events.accounts import SUBSCRIBERS_JETSTREAM, accounts
from libs.events.permissions import (
    Permissions,
    launcher_permissions,
    subscriber_permissions,
    supervisor_permissions,
)
from libs.events.subjects import token

SERVICES: Final = "services"
"""One user for all services of the control plane, where they share a password."""
SUBSCRIBER: Final = "events"
"""The subscriber that every installation has."""
SUPERVISOR: Final = "supervisor"
STORED_BY_SUBSCRIBER: Final = SUBSCRIBERS_JETSTREAM["max_file"]
STORED_OTHERWISE: Final = 64 * 2**30 - STORED_BY_SUBSCRIBER


def server(*, listen: str, name: str, store_directory: str, subscribers: int = 1) -> str:
    """Address, limits and storage.

    listen       host and port
    name         of the server, unique in its cluster
    subscribers  how many accounts of subscribers there are
    """
    return (
        f"listen: {json.dumps(listen)}\n"
        f"server_name: {json.dumps(name)}\n"
        # Orders carry whole specifications and files, log batches many lines.
        "max_payload: 8MB\n"
        "jetstream {\n"
        f"  store_dir: {json.dumps(store_directory)}\n"
        "  max_memory_store: 256MB\n"
        # A limit, not a reservation; the streams have their own. Those of the accounts have to fit into it.
        f"  max_file_store: {max_file_store(subscribers)}\n"
        "}\n"
    )


def max_file_store(subscribers: int) -> int:
    """Limit of a server on what it stores, in bytes."""
    return STORED_OTHERWISE + subscribers * STORED_BY_SUBSCRIBER


def subscriber_user(name: str | None) -> str:
    """User of the subscriber of this name; None is the one that every installation has."""
    return SUBSCRIBER if name is None else f"{SUBSCRIBER}-{name}"


def launcher_user(pool: str) -> str:
    return f"launcher-{token(pool)}"


def authorization(
    password_of: Mapping[str, str],
    pools: Iterable[str],
    *,
    services: Iterable[str] = (SERVICES,),
    subscribers: Iterable[str] = (),
) -> str:
    """The accounts with their users.

    password_of  by name of the user
    subscribers  names of those that have an account besides the one that every installation has
    services     users of the services, which may do everything in the account of the control plane
    """
    block = accounts(
        control_plane=[
            *({"user": user, "password": password_of[user]} for user in services),
            _restricted(SUPERVISOR, password_of, supervisor_permissions()),
            *(_restricted(launcher_user(pool), password_of, launcher_permissions(pool)) for pool in pools),
        ],
        subscribers={
            name: [_restricted(subscriber_user(name), password_of, subscriber_permissions())]
            for name in (None, *subscribers)
        },
    )
    return f"accounts: {json.dumps(block, indent=2)}\n"


def allowed(permissions: Permissions) -> dict[str, Any]:
    """Permissions in the words of the server."""
    return {
        "publish": {"allow": permissions.publish},
        "subscribe": {"allow": permissions.subscribe},
        **({"allow_responses": True} if permissions.answers else {}),
    }


def _restricted(user: str, password_of: Mapping[str, str], permissions: Permissions) -> dict[str, Any]:
    return {"user": user, "password": password_of[user], "permissions": allowed(permissions)}
