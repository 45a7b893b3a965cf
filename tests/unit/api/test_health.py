"""What anybody may know of what is wrong, by what the parts said."""

from __future__ import annotations

import pytest

from services.api.http.builtin.health import ResourceManagerHealth
from services.api.startup.application import health_report

MANAGER = ResourceManagerHealth(cluster_name="here", status="down")
GOOD = {"database": None, "database storage": None, "bus": None}


@pytest.mark.parametrize(
    ("found", "problems"),
    [
        ({}, {}),
        ({"database": "does not answer: ('10.0.0.7', 5432)"}, {"database": "does not answer"}),
        ({"database storage": "does not store: its disk is full"}, {"database": "does not store: its disk is full"}),
        ({"database storage": "does not store: /secret/place: read-only"}, {"database": "does not store"}),
        ({"bus": "does not store EVENTS"}, {"bus": "does not store EVENTS"}),
        ({"database": "x", "database storage": "y", "bus": "z"}, {"database": "does not answer", "bus": "z"}),
        ({"http": "not there yet"}, {}),
    ],
)
def test_health_is_down_with_what_has_to_store(found: dict[str, str], problems: dict[str, str]) -> None:
    report = health_report({**GOOD, **found}, MANAGER)
    assert report.problems == problems
    assert report.status == ("down" if problems else "up")
    assert report.database == ("down" if "database" in problems else "up")
    assert report.bus == ("down" if "bus" in problems else "up")
