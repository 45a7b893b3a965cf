"""Reads messages of the bus as any receiver of CloudEvents does, and compares them with the published contract."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from cloudevents.core.bindings.http import HTTPMessage, from_binary_event
from cloudevents.core.v1.event import CloudEvent
from jsonschema import Draft202012Validator, FormatChecker

CONTRACT: Final[dict[str, Any]] = yaml.safe_load((Path(__file__).parents[2] / "docs" / "asyncapi.yaml").read_text())
"""docs/asyncapi.yaml, as subscribers get it."""


def read_cloud_event(headers: Mapping[str, str], data: bytes) -> CloudEvent:
    """Raises what the library raises for a message that is no CloudEvent.

    The library has no binding for NATS; that for HTTP has the same headers.
    """
    event = from_binary_event(HTTPMessage(headers=dict(headers), body=data))
    assert isinstance(event, CloudEvent)
    return event


def check_contract(headers: Mapping[str, str], payload: Mapping[str, Any]) -> None:
    """Raises jsonschema.ValidationError when headers or payload are not what docs/asyncapi.yaml says of the message."""
    named = {
        message["payload"]["$ref"].rpartition("/")[2]: message
        for message in CONTRACT["components"]["messages"].values()
        if "payload" in message
    }
    tagged = {
        schema["properties"]["type"]["enum"][0]: name
        for name in named
        if "type" in (schema := CONTRACT["components"]["schemas"][name]).get("properties", {})
    }
    message = named[tagged[payload["type"]]]
    for part, found in (("headers", dict(headers)), ("payload", payload)):
        schema = {"$ref": message[part]["$ref"], "components": CONTRACT["components"]}
        Draft202012Validator(schema, format_checker=FormatChecker()).validate(found)
