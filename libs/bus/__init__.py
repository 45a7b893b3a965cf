"""NATS JetStream behind calls that say what they guarantee. Only this package imports nats."""

from pathlib import Path

from libs.imports.lean import import_without

import_without("nats.aio.transport", "aiohttp", "importlib.metadata")  # the bus over websockets; archives and mail

import nats.aio.client  # noqa: E402

# What importlib.metadata would have read, and servers show of their clients.
for _found in Path(nats.__file__).parents[1].glob("nats_py-*.dist-info"):
    nats.aio.client.__version__ = _found.name.removesuffix(".dist-info").partition("-")[2]

from libs.bus.bucket import Bucket, Entry, KvChange, SnapshotEnd  # noqa: E402  # all of these import nats
from libs.bus.bus import Bus, connect_bus  # noqa: E402
from libs.bus.core import CoreMessage  # noqa: E402
from libs.bus.headers import deletion_headers, event_headers  # noqa: E402
from libs.bus.message import Message  # noqa: E402
from libs.bus.publish import Outbound  # noqa: E402
from libs.bus.settings import BusSettings  # noqa: E402
from libs.bus.streams import DELETIONS_KEPT_S  # noqa: E402

__all__ = [
    "DELETIONS_KEPT_S",
    "Bucket",
    "Bus",
    "BusSettings",
    "CoreMessage",
    "Entry",
    "KvChange",
    "Message",
    "Outbound",
    "SnapshotEnd",
    "connect_bus",
    "deletion_headers",
    "event_headers",
]
