"""Writes for the Helm chart who may do what on the bus: ``python -m deploy.bus_permissions``.

Templates of a chart cannot ask the code. So they find in ``files/bus.json`` what ``libs/events`` says, with
``POOL-TOKEN`` where the name of a pool belongs, and a test keeps the two equal.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from deploy.nats_configuration import allowed
from libs.events import subjects
from libs.events.accounts import CONTROL_PLANE, SUBSCRIBERS, accounts
from libs.events.permissions import SERVICES_INBOX, launcher_permissions, subscriber_permissions

FILE: Final = Path(__file__).parent / "helm" / "files" / "bus.json"
POOL: Final = "POOL-TOKEN"


def bus_file() -> str:
    """The text of ``files/bus.json``."""
    content = {
        "control_plane": CONTROL_PLANE,
        "subscribers": SUBSCRIBERS,
        "services_inbox": SERVICES_INBOX,
        "logs_stream": subjects.LOGS_STREAM,
        "log_consumers": [subjects.logs_writer(shard) for shard in range(subjects.LOG_SHARDS)],
        "accounts": accounts(control_plane=[], subscribers=[]),
        "launcher": allowed(launcher_permissions(POOL)),
        "subscriber": allowed(subscriber_permissions()),
    }
    return json.dumps(content, indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(bus_file())
