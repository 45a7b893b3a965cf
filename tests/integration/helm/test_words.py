"""What the documentation and the notes of the chart name, there is."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.harness.helm import CHART, render
from tests.harness.pages.blocks import blocks_of, document
from tests.integration.helm.conftest import VALUES, options_for

ROOT: Final = Path(__file__).parents[3]
SCHEMA: Final[dict[str, Any]] = json.loads((CHART / "values.schema.json").read_text())
KEYS_OF_SECRETS: Final = {"ca.crt", "tls.crt", "tls.key"}
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


PAGES: Final = {
    "install-kubernetes": 40,
    "scale": 10,
    "secure": 10,
    "move-tasks": 4,
    "several-pools": 5,
    "several-clusters": 4,
    "tls": 5,
}
"""Pages about the chart, and how many of its values each names at least."""
OF_THE_CONFIGURATION: Final = {
    "security.host_paths",
    "security.pod_fields",
    "security.pod_labels",
    "security.pod_spec",
    "security.release_namespace",
    "security.storage_addresses",
    "security.tls",
    "security.tls.ca",
    "security.tls.cert",
    "security.tls.key",
    "security.token.in_tasks",
    "tasks.additional_ca_file",
    "tasks.localhost",
    "tasks.main_address",
    "tasks.master_ca_file",
    "tasks.master_cert_file",
}


@pytest.mark.parametrize("page", PAGES)
def test_the_documentation_names_values_that_there_are(page: str) -> None:
    text, pedl, table = (ROOT / "docs" / f"{page}.md").read_text().partition("## From PEDL")
    # The first column of the table about PEDL is of that product.
    named = NAMED.findall(text + pedl + re.sub(r"^\| [^|]*\|", "|", table, flags=re.MULTILINE))
    values = {path for path in named if path.split(".")[0] in SCHEMA["properties"]}
    values -= KEYS_OF_SECRETS | OF_THE_CONFIGURATION
    assert len(values) >= PAGES[page]
    assert [path for path in sorted(values) if not is_known(path)] == []


@pytest.mark.parametrize("page", PAGES)
def test_examples_of_values_keep_to_the_schema(page: str) -> None:
    for block in blocks_of(document(page), "yaml"):
        given = yaml.safe_load(block.text)
        if "apiVersion" in given:
            continue  # an object of the cluster
        assert [path for path in sorted(set(paths(given)) - OF_THE_CONFIGURATION) if not is_known(path)] == []


def paths(values: Any, prefix: str = "") -> Iterator[str]:
    """Every key of an example, with those above it."""
    for name, value in values.items():
        yield f"{prefix}{name}"
        if isinstance(value, dict):
            yield from paths(value, f"{prefix}{name}.")


def test_the_chart_has_the_version_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == project["version"]


NOTES: Final = {
    "defaults": "{{or .hostname .ip}} {{end}}' | cut -d' ' -f1):8080",
    "node_port": "jsonpath='{.spec.ports[0].nodePort}'",
    "cluster_ip": "port-forward service/determined-master-service-rel 8080",
    "tls_ingress": "export DET_MASTER=https://det.example.com",
    "tls_gateway": "export DET_MASTER=https://det.example.com",
    "openshift": "export DET_MASTER=https://det.example.com",
    "blank_password": "whose password is blank",
    "launcher_only": "Launchers of far.away are installed",
    "enterprise": "NOTE: saml: providers of identities are asked by OpenID Connect",
    "coscheduler": "det experiment create",
    "determined": "NOTE: defaultImages.postgreSQL: postgres:10.14 is older than PostgreSQL 14",
}


@pytest.mark.parametrize("values", NOTES)
def test_the_notes_tell_the_address_and_what_has_no_effect(values: str, chart_with_notes: Path) -> None:
    notes = render(VALUES / f"{values}.yaml", *options_for(values), chart=chart_with_notes).get("Notes", "notes")[
        "text"
    ]
    assert NOTES[values] in notes
    assert ("NOTE:" in notes) == (values in ("enterprise", "determined"))


def test_what_has_no_effect_is_said_with_its_reason(chart_with_notes: Path) -> None:
    notes = render(VALUES / "enterprise.yaml", *options_for("enterprise"), chart=chart_with_notes).get("Notes", "notes")
    for said in (
        "observability: /metrics is always served",
        "saml: providers of identities are asked by OpenID Connect, see oidc",
        "telemetry: nothing is sent to anybody",
        'retentionPolicy.schedule: "0 0 * * *" is no duration such as 24h; expired lines are deleted every hour',
        "logColor: logs are JSON",
    ):
        assert f"NOTE: {said}." in notes["text"]


def test_the_notes_ask_for_the_address_of_whoever_ends_https(chart_with_notes: Path) -> None:
    said = "api.trustedProxies={10.4.0.0/16}"
    for more, expected in (
        ((), True),
        (("--set", "api.trustedProxies={10.4.0.0/16}"), False),
        (("--set", "tls.termination=api,ingress.enabled=false"), False),
    ):
        options = (*options_for("tls_ingress"), *more)
        notes = render(VALUES / "tls_ingress.yaml", *options, chart=chart_with_notes).get("Notes", "notes")["text"]
        assert (said in notes) is expected, more
