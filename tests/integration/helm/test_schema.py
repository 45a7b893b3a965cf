"""The schema of the values: what is known, what is refused, and that nothing is left untested."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.harness.helm import CHART, run_helm
from tests.integration.helm.conftest import VALUES, options_for

SCHEMA: Final = json.loads((CHART / "values.schema.json").read_text())
NOT_IN_THE_CHART: Final = {"global"}

REFUSED: Final = [
    ("maxSlotsPerPod is required", {"maxSlotsPerPod": None}),
    ("additional properties 'maxSlotPerPod' not allowed", {"maxSlotPerPod": 4}),
    ("additional properties 'storageSzie' not allowed", {"db": {"storageSzie": "1Gi"}}),
    ("initialUserPassword must have at least 8 characters", {"initialUserPassword": "Aa1"}),
    ("initialUserPassword must include an uppercase letter", {"initialUserPassword": "aaaaaaaa1"}),
    ("initialUserPassword must include a lowercase letter", {"initialUserPassword": "AAAAAAAA1"}),
    ("initialUserPassword must include a number", {"initialUserPassword": "AAAAaaaa"}),
    (
        "connection_string excludes account_url and credential",
        {"checkpointStorage": {"type": "azure", "connection_string": "a", "account_url": "b"}},
    ),
    ("slotResourceRequests.cpu is required with slotType cpu", {"slotType": "cpu"}),
    ("launcherOnly: nats.external.url is required", {"launcherOnly": True}),
    ("security.authz.type: all is none of", {"security": {"authz": {"type": "all"}}}),
    (
        "resource pool has a duplicate name: a",
        {"resourcePools": [{"pool_name": "a"}, {"pool_name": "a"}]},
    ),
    (
        "tls.termination is ingress, but ingress.enabled is not true",
        {"tlsSecret": "a", "tls": {"termination": "ingress"}},
    ),
    (
        "tls.additionalCa: secretName and configMapName cannot both be given",
        {"tls": {"additionalCa": {"secretName": "a", "configMapName": "b"}}},
    ),
    ("tls.additionalCa needs secretName or configMapName", {"tls": {"additionalCa": {"key": "a"}}}),
    ("db.resourceType must be secret or configMap", {"db": {"hostAddress": "a", "certResourceName": "b"}}),
    ("db.certResourceName need db.hostAddress", {"db": {"sslMode": "require"}}),
    ("db.servicesPassword must be of ASCII characters", {"db": {"servicesPassword": "pässword"}}),
    ("web.image and web.root cannot both be given", {"web": {"image": "a", "root": "/page"}}),
    ("web.path is required with web.image", {"web": {"image": "a", "path": ""}}),
    ("nats.external.secretName is required", {"nats": {"external": {"url": "nats://a:4222"}}}),
    ('there is no resource pool named "b"', {"launcher": {"remotePools": ["b"]}}),
    ("value must be one of 1, 3", {"nats": {"replicas": 2}}),
    ("tasks.namespace is required where the cluster cannot be asked", {"tasks": {}}),
    (
        "tasks.namespace is det-tasks, but resourceManager.defaultNamespace is research",
        {"resourceManager": {"defaultNamespace": "research"}},
    ),
    ("networkPolicy.metricsFrom is required", {"monitoring": {"serviceMonitors": True}}),
    ("networkPolicy.tasks.metadataAddresses is required", {"checkpointStorage": {"type": "gcs", "bucket": "b"}}),
    (
        "networkPolicy.tasks.metadataAddresses is required",
        {"checkpointStorage": {"type": "s3", "bucket": "b", "accessKey": ""}},
    ),
    (
        "networkPolicy.tasks.extraEgress is required: checkpointStorage.endpointUrl names minio.storage.svc",
        {
            "checkpointStorage": {
                "type": "s3",
                "bucket": "b",
                "accessKey": "a",
                "secretKey": "s",
                "endpointUrl": "http://minio.storage.svc:9000",
            }
        },
    ),
    (
        "networkPolicy.tasks.extraIngress is required",
        {"resourceManager": {"internalTaskGateway": {"gateway_name": "g", "gateway_namespace": "gateways"}}},
    ),
]


@pytest.mark.parametrize(
    ("says", "values"), REFUSED, ids=[f"{number} {says}" for number, (says, _) in enumerate(REFUSED)]
)
def test_what_makes_no_sense_is_refused_in_words(says: str, values: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text(yaml.safe_dump({"maxSlotsPerPod": 4, "tasks": {"namespace": "det-tasks"}, **values}))
    done = run_helm("template", "rel", str(CHART), "-f", str(path))
    assert done.returncode != 0
    assert says in done.stderr


def test_a_release_name_that_is_too_long_is_refused() -> None:
    done = run_helm("template", "a" * 28, str(CHART), "--set", "maxSlotsPerPod=4,tasks.namespace=det-tasks")
    assert "is longer than 27 characters" in done.stderr


def leaves(schema: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Paths of the values below which nothing is named."""
    for name, each in schema["properties"].items():
        if "properties" in each:
            yield from leaves(each, (*path, name))
        else:
            yield (*path, name)


def given(values: dict[str, Any], path: tuple[str, ...]) -> bool:
    """Whether a values file says something at a path."""
    at: Any = values
    for name in path:
        if not isinstance(at, dict) or at.get(name) is None:
            return False
        at = at[name]
    return True


def test_every_value_is_given_in_some_file() -> None:
    files = [yaml.safe_load(path.read_text()) for path in VALUES.glob("*.yaml")]
    unused = [".".join(path) for path in leaves(SCHEMA) if not any(given(values, path) for values in files)]
    assert set(unused) - NOT_IN_THE_CHART == set()


def test_every_value_is_described() -> None:
    def undescribed(schema: dict[str, Any], path: str) -> Iterator[str]:
        for name, each in schema.get("properties", {}).items():
            if not each.get("description") and not path.startswith(".additional_resource_managers"):
                yield f"{path}.{name}"
            yield from undescribed(each, f"{path}.{name}")

    assert list(undescribed(SCHEMA, "")) == []


def test_the_defaults_keep_to_the_schema() -> None:
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    assert [name for name in defaults if name not in SCHEMA["properties"]] == []


def test_lint_finds_nothing(any_values: str) -> None:
    done = run_helm(
        "lint", str(CHART), "--quiet", "-f", str(VALUES / f"{any_values}.yaml"), *options_for(any_values)[-2:]
    )
    assert done.returncode == 0, done.stdout
