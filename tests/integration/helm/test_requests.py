"""What pods ask for: a small node has room for all of them, also while an upgrade goes on."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.harness.helm import CHART, Manifest, Release, at, render
from tests.integration.helm.conftest import BESIDE

UNITS: Final = {"m": 0.001, "Mi": 2**20, "Gi": 2**30}


def quantity(value: str) -> float:
    unit = next((unit for unit in UNITS if value.endswith(unit)), None)
    return float(value.removesuffix(unit)) * UNITS[unit] if unit else float(value)


def asked_for(pod: Manifest, resource: str) -> float:
    """By a pod: its containers together, or the largest of those before them."""

    def of(containers: str) -> list[float]:
        return [quantity(str(at(each, f"resources/requests/{resource}") or 0)) for each in pod.get(containers, ())]

    return max(math.fsum(of("containers")), *of("initContainers"), 0.0)


def together(release: Release, resource: str) -> float:
    total = 0.0
    for name, template in release.pods():
        kind, _, bare = name.partition("/")
        replicas = release.by_name[kind, bare]["spec"].get("replicas", 1)
        total += replicas * asked_for(template["spec"], resource)
    return total


@pytest.mark.parametrize(
    ("values", "cores", "gib"), [("values-small.yaml", 1.0, 2.0), ("values.yaml", 1.75, 3.75)], ids=["small", "default"]
)
def test_all_pods_together_ask_for_no_more_than_the_documentation_says(values: str, cores: float, gib: float) -> None:
    release = render(CHART / values, "--set", "maxSlotsPerPod=1", *BESIDE)
    assert together(release, "cpu") < cores
    assert together(release, "memory") < gib * 2**30


ROWS: Final = {
    "`api`": "api/resources/requests",
    "`scheduler`": "scheduler/resources/requests",
    "`logs`": "logs/resources/requests",
    "`launcher` of a pool": "launcher/resources/requests",
    "NATS": "nats/resources/requests",
}


def test_the_table_of_what_was_measured_says_what_pods_ask_for() -> None:
    page = (Path(__file__).parents[3] / "docs" / "install-kubernetes.md").read_text()
    rows = (line.split(" | ") for line in page.splitlines() if line.startswith("| ") and line.count("MiB") == 3)
    asked = {name.removeprefix("| "): wanted for name, wanted, *_ in rows}
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    requests = {name: at(values, path) for name, path in ROWS.items()}
    requests["PostgreSQL"] = {"cpu": values["db"]["cpuRequest"], "memory": values["db"]["memRequest"]}
    assert asked == {name: f"{each['cpu']}, {each['memory']}" for name, each in requests.items()}


def test_the_values_for_a_small_node_are_named_where_one_looks() -> None:
    page = (Path(__file__).parents[3] / "docs" / "install-kubernetes.md").read_text()
    assert "-f deploy/helm/values-small.yaml" in page
