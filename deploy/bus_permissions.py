"""Writes for the Helm chart who may do what on the bus: ``python -m deploy.bus_permissions``.

Templates of a chart cannot ask the code. So they find in ``files/bus.json`` what ``libs/events`` says, with
``POOL-TOKEN`` and ``SUBSCRIBER-NAME`` where the name of a pool or of a subscriber belongs, and a test keeps the two
equal.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from deploy.nats_configuration import STORED_BY_SUBSCRIBER, STORED_OTHERWISE, allowed
from libs.events import subjects
from libs.events.accounts import CONTROL_PLANE, SUBSCRIBERS, accounts, copy_imports, subscriber_account
from libs.events.permissions import SERVICES_INBOX, launcher_permissions, subscriber_permissions

FILE: Final = Path(__file__).parent / "helm" / "files" / "bus.json"
POOL: Final = "POOL-TOKEN"
NAME: Final = "SUBSCRIBER-NAME"


def bus_file() -> str:
    """The text of ``files/bus.json``."""
    content = {
        "control_plane": CONTROL_PLANE,
        "subscribers": SUBSCRIBERS,
        "services_inbox": SERVICES_INBOX,
        "logs_stream": subjects.LOGS_STREAM,
        "log_consumers": [subjects.logs_writer(shard) for shard in range(subjects.LOG_SHARDS)],
        "accounts": accounts(control_plane=[], subscribers={None: []}),
        "named_subscriber": {
            "account": subscriber_account(NAME),
            "content": accounts(control_plane=[], subscribers={NAME: []})[subscriber_account(NAME)],
            "imports": copy_imports(NAME),
        },
        "max_file_store": {"each_subscriber": STORED_BY_SUBSCRIBER, "everything_else": STORED_OTHERWISE},
        "launcher": allowed(launcher_permissions(POOL)),
        "subscriber": allowed(subscriber_permissions()),
    }
    return json.dumps(content, indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(bus_file())
