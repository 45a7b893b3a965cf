"""What the documentation and the notes of the chart name, there is."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.harness.helm import CHART, render
from tests.integration.helm.conftest import VALUES

ROOT: Final = Path(__file__).parents[3]
SCHEMA: Final[dict[str, Any]] = json.loads((CHART / "values.schema.json").read_text())
KEYS_OF_SECRETS: Final = {"tls.crt", "tls.key"}
NAMED: Final = re.compile(r"`([a-z]\w*(?:\.\w+)*)(?:: [^`]*)?`")


def is_known(path: str) -> bool:
    """Whether the schema has a value of this path, or takes anything there."""
    at = SCHEMA
    for name in path.split("."):
        if "properties" not in at:
            return True
        if name not in at["properties"]:
            return False
        at = at["properties"][name]
    return True


def test_the_documentation_names_values_that_there_are() -> None:
    text = (ROOT / "docs" / "install-kubernetes.md").read_text()
    # The first column of the table about PEDL is of that product.
    ours = re.sub(r"^\| [^|]*\|", "|", text[text.index("## From PEDL") :], flags=re.MULTILINE)
    named = NAMED.findall(text[: text.index("## From PEDL")]) + NAMED.findall(ours)
    values = {path for path in named if path.split(".")[0] in SCHEMA["properties"]} - KEYS_OF_SECRETS
    assert len(values) > 50
    assert [path for path in sorted(values) if not is_known(path)] == []


def test_the_chart_has_the_version_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == project["version"]


NOTES: Final = {
    "defaults": "jsonpath='{.status.loadBalancer.ingress[0].*}'):8080",
    "node_port": "jsonpath='{.spec.ports[0].nodePort}'",
    "cluster_ip": "port-forward service/determined-master-service-rel 8080",
    "tls_ingress": "export DET_MASTER=https://det.example.com",
    "tls_gateway": "export DET_MASTER=https://det.example.com",
    "openshift": "export DET_MASTER=https://det.example.com",
    "blank_password": "whose password is blank",
    "launcher_only": "Launchers of far.away are installed",
    "enterprise": "NOTE: saml: users are managed with det user",
    "coscheduler": "det experiment create",
}


@pytest.fixture(scope="module")
def chart_with_notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart with its notes as an object, since only an installation shows them."""
    chart: Path = tmp_path_factory.mktemp("notes") / "chart"
    shutil.copytree(CHART, chart)
    notes = (chart / "templates" / "NOTES.txt").rename(chart / "templates" / "notes.yaml")
    text = notes.read_text()
    notes.write_text(
        '{{- define "notes" }}' + text + "{{- end }}\n"
        '{apiVersion: v1, kind: Notes, metadata: {name: notes}, text: {{ include "notes" . | toRawJson }}}\n'
    )
    return chart


@pytest.mark.parametrize("values", NOTES)
def test_the_notes_tell_the_address_and_what_has_no_effect(values: str, chart_with_notes: Path) -> None:
    notes = render(VALUES / f"{values}.yaml", chart=chart_with_notes).get("Notes", "notes")["text"]
    assert NOTES[values] in notes
    assert ("NOTE:" in notes) == (values == "enterprise")
