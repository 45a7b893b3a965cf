"""Dashboards of Grafana ask for metrics and labels that exist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.unit.deploy.observability.promql import labels_in, labels_left, problems, samples

FOLDER: Final = Path(__file__).resolve().parents[4] / "deploy" / "helm" / "files" / "observability" / "dashboards"
DASHBOARDS: Final = {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
TARGETS: Final = [
    pytest.param(target, id=f"{name}: {panel['title']}")
    for name, dashboard in DASHBOARDS.items()
    for panel in dashboard["panels"]
    for target in panel["targets"]
]


@pytest.mark.parametrize("target", TARGETS)
def test_a_panel_asks_for_what_exists(target: dict[str, Any]) -> None:
    expression = target["expr"].replace("$__rate_interval", "5m")
    assert problems(expression, samples()) == []
    assert labels_in(target["legendFormat"]) <= labels_left(expression)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_variables_are_labels_that_exist(name: str) -> None:
    known = samples()
    for variable in DASHBOARDS[name]["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = variable["query"].removeprefix("label_values(").removesuffix(")").split(", ")
            assert label in known[metric]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_have_places_of_their_own_within_the_grid(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    panels = DASHBOARDS[name]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells


def test_dashboards_are_told_apart() -> None:
    assert len(DASHBOARDS) == 2
    assert len({dashboard["uid"] for dashboard in DASHBOARDS.values()}) == 2
