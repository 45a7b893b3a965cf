from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from deploy.operations.doctor.leaders import WAITS_LONG_S, Leaders, about_leaders

NOW = datetime(2030, 1, 1, tzinfo=UTC)
FINE = Leaders(schedules=True, relays=True, now=NOW, oldest_message=None)


@pytest.mark.parametrize(
    ("changes", "levels"),
    [
        ({}, ["ok", "ok"]),
        ({"schedules": False}, ["problem", "ok"]),
        ({"relays": False}, ["ok", "problem"]),
        ({"oldest_message": NOW - timedelta(seconds=1)}, ["ok", "ok"]),
        ({"oldest_message": NOW - timedelta(seconds=WAITS_LONG_S + 1)}, ["ok", "problem"]),
    ],
)
def test_who_does_not_act_is_named(changes: dict[str, object], levels: list[str]) -> None:
    findings = about_leaders(msgspec.structs.replace(FINE, **changes))
    assert [finding.level for finding in findings] == levels
    assert all(finding.remedy for finding in findings if finding.level == "problem")
