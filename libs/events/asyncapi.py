"""The AsyncAPI document of the bus, generated from the structs, so that it cannot say anything else than the code.

``make docs`` writes it to docs/asyncapi.yaml. Source: AsyncAPI specification 3.0.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final, get_args, get_type_hints

import msgspec
import yaml
from msgspec import Struct

from libs.events import subjects
from libs.events.capacity import PoolCapacity
from libs.events.changes import PublicEvent
from libs.events.cluster_admin import CLUSTER_ADMIN_REQUESTS
from libs.events.logs import LogBatch
from libs.events.observation_requests import REPORT_AGAIN, ReportAgainRequest
from libs.events.observations import AllocationObserved
from libs.events.orders import Order, PlaceholderOrder
from libs.events.reconcile_requests import ReconcileRequest
from libs.events.requests.queue_checks import QueueCheck

VERSION: Final = "1"
JSON: Final = "application/json"
MSGPACK: Final = "application/msgpack"

_ID: Final = "ID"
"""Stands for a parameter while a subject is built; letters, so that no function of ``subjects`` escapes it."""


@dataclass(frozen=True, kw_only=True)
class Channel:
    """One pattern of subjects and the struct found there."""

    address: str
    description: str
    message: type[Struct] | None = None
    """None for a message without content."""
    content_type: str = JSON
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def channels() -> dict[str, Channel]:
    """Every channel of the bus by name."""
    token = {"description": "The id, with every dot as `_` and other special characters as `=XX` (hexadecimal UTF-8)."}
    found = {_entity(event): _changes(event, token) for event in get_args(PublicEvent)}
    pool, allocation = "POOL", "ALLOCATION"
    found["allocationObserved"] = Channel(
        address=subjects.observed(pool, _ID).replace(_ID, "{id}").replace(pool, "{pool}"),
        description=f"What the launcher of a pool sees of an allocation. In the stream {subjects.EVENTS_STREAM}.",
        message=AllocationObserved,
        parameters={"id": token, "pool": token},
    )
    order_key = subjects.order_key(pool, allocation).replace(pool, "{pool}").replace(allocation, "{allocation}")
    found["orders"] = Channel(
        address=subjects.kv_subject(subjects.ORDERS_BUCKET, order_key),
        description=f"The state one allocation should be in: the KV bucket {subjects.ORDERS_BUCKET}.",
        message=Order,
        parameters={"pool": token, "allocation": token},
    )
    found["placeholders"] = Channel(
        address=subjects.kv_subject(subjects.ORDERS_BUCKET, subjects.placeholders_key(pool).replace(pool, "{pool}")),
        description=f"What the launcher of a pool holds room for: the KV bucket {subjects.ORDERS_BUCKET}.",
        message=PlaceholderOrder,
        parameters={"pool": token},
    )
    found["capacity"] = Channel(
        address=subjects.kv_subject(subjects.CAPACITY_BUCKET, subjects.capacity_key(pool).replace(pool, "{pool}")),
        description=f"What a pool could run: the KV bucket {subjects.CAPACITY_BUCKET}.",
        message=PoolCapacity,
        parameters={"pool": token},
    )
    shard = {"description": "Shard of the task.", "enum": [str(number) for number in range(subjects.LOG_SHARDS)]}
    logs = subjects.logs_of_launcher(pool, _ID).replace(f".{subjects.log_shard(_ID)}.", ".{shard}.")
    logs = logs.replace(_ID, "{task}").replace(pool, "{pool}")
    found["launcherLogs"] = Channel(
        address=logs,
        description=f"What the launcher of a pool says in the log of a task, in {subjects.LOGS_STREAM} as well.",
        message=LogBatch,
        content_type=MSGPACK,
        parameters={"shard": shard, "task": token, "pool": token},
    )
    found["logs"] = Channel(
        address=logs.removesuffix(".{pool}"),
        description=f"Log lines on their way to storage: the work queue {subjects.LOGS_STREAM}, for its writer only.",
        message=LogBatch,
        content_type=MSGPACK,
        parameters={"shard": shard, "task": token},
    )
    found["logsStored"] = Channel(
        address=subjects.log_stored(_ID).replace(_ID, "{task}"),
        description="There are new lines of a task in storage. Not kept, and without content.",
        parameters={"task": token},
    )
    requests: dict[str, type[Struct]] = {**CLUSTER_ADMIN_REQUESTS, REPORT_AGAIN: ReportAgainRequest}
    for verb, request in requests.items():
        found[_camel_case(verb)] = Channel(
            address=subjects.launcher_rpc(pool, verb).replace(pool, "{pool}"),
            description="A request to the launcher of a pool, answered on the reply subject; for the control plane.",
            message=request,
            parameters={"pool": token},
        )
    found["reconcile"] = Channel(
        address=subjects.RECONCILE,
        description="A request to the scheduler, answered when it has reconciled; for the control plane.",
        message=ReconcileRequest,
    )
    found["checkQueue"] = Channel(
        address=subjects.CHECK_QUEUE,
        description="A question to the scheduler, answered from the state of now; for the control plane.",
        message=QueueCheck,
    )
    found["notesUse"] = Channel(
        address=subjects.NOTES_USE,
        description="A request to any api, answered when it could note that a task is in use; for the control plane.",
    )
    return found


def _camel_case(verb: str) -> str:
    first, *rest = verb.split("-")
    return first + "".join(word.capitalize() for word in rest)


def _entity(event: type[Struct]) -> str:
    return event.__name__.removesuffix("Changed").lower()


def _changes(event: type[Struct], token: Mapping[str, Any]) -> Channel:
    entity = _entity(event)
    what = get_args(get_type_hints(event)["what"])
    return Channel(
        address=subjects.event(entity, _ID, "{what}").replace(_ID, "{id}"),
        description=f"Something about one {entity} changed. In the stream {subjects.EVENTS_STREAM}.",
        message=event,
        parameters={"id": token, "what": {"description": "What changed.", "enum": list(what)}},
    )


def document() -> dict[str, Any]:
    """The AsyncAPI 3.0 document as plain data; the same on every call."""
    found = channels()
    messages = {channel.message for channel in found.values() if channel.message is not None}
    ordered = sorted(messages, key=lambda message: message.__name__)
    _, schemas = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Resolute",
            "version": VERSION,
            "description": (
                "What happens in Resolute, for whoever wants to know: subscribe with any NATS client. Of the stream "
                f"{subjects.EVENTS_STREAM} subscribers read the copy {subjects.PUBLIC_EVENTS_STREAM}.\n\n"
                "Events are notifications: reasons to look again. They may come twice, late or out of order; receivers "
                "ignore fields they do not know. Metadata is in the headers, as the CloudEvents NATS binding says "
                "(binary mode)."
            ),
        },
        "defaultContentType": JSON,
        "channels": {name: _channel(channel) for name, channel in found.items()},
        "operations": {
            f"{name}Sent": {"action": "send", "channel": {"$ref": f"#/channels/{name}"}, "summary": channel.description}
            for name, channel in found.items()
        },
        "components": {
            "messages": _messages(found),
            "schemas": {
                **dict(sorted(schemas.items())),
                "EventHeaders": _event_headers(),
                "MessageHeaders": {"type": "object", "properties": _message_headers()},
            },
        },
    }


def _channel(channel: Channel) -> dict[str, Any]:
    name = _message_name(channel)
    return {
        "address": channel.address,
        "description": channel.description,
        "parameters": {parameter: deepcopy(dict(about)) for parameter, about in channel.parameters.items()},
        "messages": {name: {"$ref": f"#/components/messages/{name}"}},
    }


def _message_name(channel: Channel) -> str:
    return channel.message.__name__ if channel.message is not None else "Empty"


def _messages(found: Mapping[str, Channel]) -> dict[str, Any]:
    described: dict[str, Any] = {}
    for channel in found.values():
        name = _message_name(channel)
        if channel.message is None:
            described[name] = {"name": name, "summary": "Nothing: that it comes is all there is to know."}
            continue
        described[name] = {
            "name": name,
            "summary": channel.description,
            "contentType": channel.content_type,
            "headers": {"$ref": f"#/components/schemas/{_headers_of(channel.message)}"},
            "payload": {"$ref": f"#/components/schemas/{name}"},
        }
    return dict(sorted(described.items()))


def _headers_of(message: type[Struct]) -> str:
    return "EventHeaders" if message in (*get_args(PublicEvent), AllocationObserved) else "MessageHeaders"


def _event_headers() -> dict[str, Any]:
    attributes = {
        "ce-specversion": {"const": "1.0"},
        "ce-id": {"type": "string", "description": "Unique for its ce-source; a copy has the same."},
        "ce-type": {"type": "string", "description": "What happened, as in resolute.v1.experiment.state."},
        "ce-source": {"type": "string", "format": "uri-reference", "description": "Who says it."},
        "ce-subject": {"type": "string", "description": "Id of the object that it is about."},
        "ce-time": {
            "type": "string",
            "format": "date-time",
            "description": "Of the transaction that changed the object; of an observation, when it was made.",
        },
        "ce-datacontenttype": {"const": JSON},
    }
    return {
        "type": "object",
        "description": (
            "Attributes of CloudEvents 1.0. What is not printable ASCII is percent-encoded, as are quotes and "
            "percent signs."
        ),
        "required": [*attributes, "Nats-Msg-Id"],
        "properties": {
            **attributes,
            "ce-traceparent": {
                "type": "string",
                "description": "W3C trace context in which it happened, where there is one.",
            },
            **_message_headers(),
        },
    }


def _message_headers() -> dict[str, Any]:
    return {
        "Nats-Msg-Id": {
            "type": "string",
            "description": "The server stores an id once within two minutes. Of an event it is ce-id.",
        },
        "traceparent": {"type": "string", "description": "W3C trace context of the message, where there is one."},
    }


def render() -> str:
    """The document as YAML."""
    return yaml.safe_dump(document(), sort_keys=False, allow_unicode=True, width=120)
