"""NATS JetStream behind calls that say what they guarantee. Only this package imports nats."""

from libs.bus.bucket import Bucket, Entry, KvChange, SnapshotEnd
from libs.bus.bus import Bus, connect_bus
from libs.bus.core import CoreMessage
from libs.bus.headers import deletion_headers, event_headers
from libs.bus.message import Message
from libs.bus.publish import Outbound
from libs.bus.settings import BusSettings
from libs.bus.streams import DELETIONS_KEPT_S

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
