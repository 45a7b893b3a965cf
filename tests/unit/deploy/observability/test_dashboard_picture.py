"""The picture of the dashboard of pools, and how it is recorded."""

from __future__ import annotations

import io
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from deploy.documentation import dashboard_recording
from deploy.documentation.dashboard_picture import PICTURES, _in_unit, _path, _round_up
from deploy.documentation.dashboard_recording import panels, record


def test_the_recording_has_the_panels_of_the_dashboard() -> None:
    recording = json.loads((PICTURES / "pools.json").read_text())
    assert list(recording["panels"]) == [panel["title"] for panel in panels()]
    assert all(recording["panels"].values()), "a panel without a curve shows nothing"


def test_what_prometheus_says_is_recorded_by_legend_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def answer(url: str) -> io.BytesIO:
        asked.extend(parse_qs(urlsplit(url).query)["query"])
        labels: dict[str, str] = {"pool": "a100", "kind": "used"}
        series: list[dict[str, Any]] = [
            {"metric": labels, "values": [[0, "1"], [30, "2.00004"]]},
            {"metric": {"pool": "a100", "kind": "foreign"}, "values": [[0, "0"]]},
        ]
        return io.BytesIO(json.dumps({"data": {"result": series}}).encode())

    monkeypatch.setattr(dashboard_recording, "urlopen", answer)
    recorded = record("http://prometheus", begin=0, end=30)
    assert recorded["panels"]["Slots by pool and kind"] == {"a100 used": [1.0, None, 2.0]}
    assert not any("$" in expression for expression in asked)


def test_a_curve_has_a_gap_where_nothing_was_recorded() -> None:
    assert _path([0, 1, None, 2, 2], 2).count("M") == 2
    assert _path([0, 1, None, 2, 2], 2).count("L") == 2


@pytest.mark.parametrize(("highest", "end"), [(7, 8), (9, 10), (1, 1), (0.109, 0.12), (0.03, 0.04), (64, 80)])
def test_an_axis_ends_at_a_round_number(highest: float, end: float) -> None:
    assert _round_up(highest) == pytest.approx(end)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.5, "percentunit", "50 %"), (0.06, "ops", "0.06/s"), (0, "ops", "0"), (4, "none", "4")],
)
def test_numbers_have_the_unit_of_their_panel(value: float, unit: str, text: str) -> None:
    assert _in_unit(value, unit) == text
