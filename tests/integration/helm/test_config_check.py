"""``resolute config check`` says of values what ``helm install`` says, and what the services would say afterwards."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from deploy.operations.config.command import mistakes_of
from deploy.operations.config.mistakes import Mistake, exit_code
from deploy.operations.config.pedl import HERE
from deploy.operations.config.values import SCHEMA
from tests.harness.helm import find_helm
from tests.integration.helm.conftest import VALUES

ROOT: Final = Path(__file__).parents[3]

REFUSED: Final = [
    ({"slotType": "cpu"}, "slotResourceRequests.cpu", "is required with slotType cpu"),
    ({"slotType": "cpu", "slotResourceRequests": {"cpu": 0}}, "slotResourceRequests.cpu", "greater than 0"),
    # What only the services find in the configuration that is rendered.
    (
        {"defaultComputeResourcePool": "b"},
        "",
        "there is no resource pool named 'b' (in master.yaml, which the chart makes of these values)",
    ),
]


def checked(path: Path) -> list[Mistake]:
    find_helm()
    return mistakes_of(path, kind="values", schema=SCHEMA)


@pytest.mark.parametrize(("values", "key", "says"), REFUSED, ids=[says for _, _, says in REFUSED])
def test_what_rendering_refuses_is_an_error(values: dict[str, Any], key: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump({"maxSlotsPerPod": 4, **values}))
    (found,) = [each for each in checked(path) if each.kind == "error"]
    assert found.key == key
    assert says in found.says


def test_values_of_determined_are_taken_with_warnings_for_what_is_not_as_written() -> None:
    found = checked(VALUES / "determined.yaml")
    assert exit_code(found) == 0
    assert [each.key for each in found] == ["imageRegistry", "defaultImages.postgreSQL", "telemetry", "logColor"]
    assert found[1].says == "postgres:10.14 is older than PostgreSQL 14, which is needed; postgres:18 is taken."


def test_without_helm_it_says_that_nothing_was_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    (found,) = mistakes_of(VALUES / "defaults.yaml", kind="values", schema=SCHEMA)
    assert found.kind == "warning"
    assert "helm is not on the PATH" in found.says


def test_values_of_pedl_are_known_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "agent": {"enableCPUScheduling": True, "image": "a"},
                "tolerations": [],
                "service": {"type": "NodePort"},
                "ingress": {"enabled": True, "tls": []},
                "postgresql": {"persistence": {"size": "100Gi"}},
            }
        )
    )
    assert [(each.key, each.says) for each in mistakes_of(path, kind=None, schema=SCHEMA)] == [
        ("agent.enableCPUScheduling", "a value of PEDL's chart; here it is slotType, slotResourceRequests.cpu"),
        ("agent.image", "a value of PEDL's chart that has no counterpart; remove it"),
        ("ingress.tls", "a value of PEDL's chart; here it is tlsSecret, tls.termination"),
        ("postgresql.persistence.size", "a value of PEDL's chart; here it is db.storageSize"),
        ("service.type", "a value of PEDL's chart; here it is masterService.type"),
        ("tolerations", "a value of PEDL's chart; here it is masterTolerations"),
    ]


def test_the_values_that_pedls_have_become_are_there_and_in_the_documentation() -> None:
    schema = json.loads(SCHEMA.read_text())
    table = (ROOT / "docs" / "install-kubernetes.md").read_text().partition("## From PEDL")[2]
    for path in {each for there in HERE.values() for each in there.split(", ")}:
        at = schema
        for name in path.split("."):
            at = at["properties"][name]
        leaf = path.rpartition(".")[2]
        assert re.search(rf"`(\w+\.)*{leaf}\b", table), path
