"""What the api answers has the shape that its description says, and no field that it does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.harness.api import ApiProcess
from tests.integration.api.fuzz.objects import Objects, make_objects
from tests.integration.api.world import CLUSTER, World

PATIENCE_S = 60.0
"""With one answer, on a machine that is busy with others."""
WAITS = re.compile(r"/signals/preemption$")
FEWEST = 60
"""Answers that are looked at, so that the test is about something."""


@pytest.fixture(scope="module")
def world(world: World) -> World:
    """With webhooks that may be made for this machine, where nobody listens."""
    path = Path(world.settings["cluster_config"])
    path.write_text(f"{CLUSTER}webhooks: {{allowed_networks: [127.0.0.0/8]}}\n")
    return world


def test_answers_are_as_described(world: World, api: ApiProcess) -> None:
    objects = make_objects(world, api)
    with api.client() as client:
        document = client.get("/api/v1/openapi.json").json()
        for schema in document["components"]["schemas"].values():
            if schema.get("properties"):
                schema.setdefault("additionalProperties", False)
        looked_at = 0
        for path, operation in reads(document):
            reply = client.get(filled(path, objects), timeout=PATIENCE_S)
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            if reply.status_code != 200:
                assert str(reply.status_code) in operation["responses"], f"{path}: {reply.status_code} {reply.text}"
                schema = {"$ref": "#/components/schemas/Error"}
            validator = Draft202012Validator({**schema, "components": document["components"]})
            found = [
                f"{path}: {list(each.absolute_path)}: {each.message}" for each in validator.iter_errors(reply.json())
            ]
            assert found == []
            looked_at += 1
    assert looked_at >= FEWEST


def reads(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Paths below ``/api/v1`` that answer a GET with JSON, at once."""
    for path, methods in document["paths"].items():
        content = methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        if path.startswith("/api/v1/") and "application/json" in content and not WAITS.search(path):
            yield path, methods["get"]


def filled(path: str, objects: Objects) -> str:
    texts = {"workloadType": "EXPERIMENT", **objects.texts}
    return re.sub(r"\{(\w+)\}", lambda found: texts.get(found[1], "1"), path)
