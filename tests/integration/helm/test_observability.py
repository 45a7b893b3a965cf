"""What the chart gives to Prometheus and Grafana is what the repository has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
import yaml

from tests.harness.helm import CHART
from tests.integration.helm.conftest import Rendered

FILES: Final = CHART / "files" / "observability"


def test_the_rules_are_those_of_the_file(rendered: Rendered) -> None:
    rules = rendered("monitoring").get("PrometheusRule", "resolute")
    assert rules["spec"] == yaml.safe_load((FILES / "alerts.yaml").read_text())


@pytest.mark.parametrize("file", sorted(FILES.glob("dashboards/*.json")), ids=lambda file: file.stem)
def test_a_dashboard_is_that_of_its_file(file: Path, rendered: Rendered) -> None:
    shown = rendered("monitoring").get("ConfigMap", f"resolute-dashboard-{file.stem}")
    assert shown["data"] == {file.name: file.read_text()}
    assert json.loads(shown["data"][file.name])["title"].startswith("Resolute")
