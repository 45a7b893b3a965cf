"""The published contract says what the code sends."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import Struct

import libs.events
from libs.events import asyncapi, subjects

DOCUMENT = asyncapi.document()


def tagged_structs() -> list[type[Struct]]:
    """Every struct of libs/events that can stand alone on the bus: the ones with a tag."""
    found = set()
    for module in pkgutil.iter_modules(libs.events.__path__):
        for thing in vars(importlib.import_module(f"libs.events.{module.name}")).values():
            if isinstance(thing, type) and issubclass(thing, Struct) and thing.__struct_config__.tag is not None:
                found.add(thing)
    return sorted(found, key=lambda struct: struct.__name__)


@pytest.mark.parametrize("struct", tagged_structs(), ids=lambda struct: struct.__name__)
def test_every_message_has_channel_and_schema(struct: type[Struct]) -> None:
    reference = {"$ref": f"#/components/messages/{struct.__name__}"}
    assert any(reference in channel["messages"].values() for channel in DOCUMENT["channels"].values())
    schema = DOCUMENT["components"]["schemas"][struct.__name__]
    assert set(schema["properties"]) == {*struct.__struct_encode_fields__, struct.__struct_config__.tag_field}


def test_all_references_lead_somewhere() -> None:
    references = set(re.findall(r"#/[\w/]+", asyncapi.render()))
    assert references
    for reference in references:
        at = DOCUMENT
        for part in reference[2:].split("/"):
            at = at[part]


@pytest.mark.parametrize("channel", DOCUMENT["channels"].values(), ids=DOCUMENT["channels"])
def test_parameters_are_those_of_the_address(channel: dict[str, Any]) -> None:
    assert set(re.findall(r"{(\w+)}", channel["address"])) == set(channel["parameters"])


@pytest.mark.parametrize(
    ("channel", "subject"),
    [
        ("trial", subjects.event("trial", 7, "state")),
        ("allocationObserved", subjects.observed("gpu", "1.a.1")),
        ("orders", subjects.kv_subject(subjects.ORDERS_BUCKET, subjects.order_key("gpu", "1.a.1"))),
        ("placeholders", subjects.kv_subject(subjects.ORDERS_BUCKET, subjects.placeholders_key("gpu"))),
        ("capacity", subjects.kv_subject(subjects.CAPACITY_BUCKET, subjects.capacity_key("gpu"))),
        ("logs", subjects.logs("1.a")),
        ("launcherLogs", subjects.logs_of_launcher("gpu", "1.a")),
        ("logsStored", subjects.log_stored("1.a")),
    ],
)
def test_subjects_match_their_address(channel: str, subject: str) -> None:
    pattern = re.sub(r"\\{\w+\\}", "[^.]+", re.escape(DOCUMENT["channels"][channel]["address"]))
    assert re.fullmatch(pattern, subject)


def test_published_document_is_current() -> None:
    path = Path(__file__).parents[4] / "docs" / "asyncapi.yaml"
    current = yaml.safe_load(asyncapi.render())
    assert yaml.safe_load(path.read_text()) == current, "run make docs, and commit what it writes"
