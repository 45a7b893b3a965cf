"""Types of public events, and patterns of them."""

from __future__ import annotations

import pytest

from libs.events import subjects
from libs.webhooks.cloud_events import matches, type_of, types_matching


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (subjects.event("experiment", 7, "state"), "resolute.v1.experiment.state"),
        (subjects.event("pool", "a.b", "queue"), "resolute.v1.pool.queue"),
        (subjects.observed("pool", "7.x.1"), None),
        ("resolute.v1.experiment.7.unknown", None),
        ("resolute.checks.EVENTS", None),
    ],
)
def test_type_of_what_is_under_a_subject(subject: str, expected: str | None) -> None:
    assert type_of(subject) == expected


def test_pattern_means_known_types_only() -> None:
    assert types_matching("resolute.v1.experiment.state") == ["resolute.v1.experiment.state"]
    assert len(types_matching("resolute.v1.experiment.*")) > 3
    assert types_matching("resolute.v1.nothing.*") == []
    assert matches("resolute.v1.user.created", ["resolute.v1.pool.*", "*.created"])
    assert not matches("resolute.v1.user.created", [])
