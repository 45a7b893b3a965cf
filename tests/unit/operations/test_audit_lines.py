"""What ``resolute audit`` prints of a record."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from deploy.operations.audit import as_lines

RECORD: dict[str, Any] = {
    "recorded_at": datetime(2026, 1, 31, 12, tzinfo=UTC),
    "username": "ann",
    "address": "10.0.0.8",
    "allocation_id": None,
    "action": "POST /api/v1/experiments/{id}/pause",
    "target": {"id": "7"},
    "details": {},
    "changed": [{"entity": "experiment", "id": "7", "what": "state"}],
}


def without_time(*changes: dict[str, Any]) -> list[str]:
    return [
        line[len("2026-01-31 12:00:00  ") :] for line in as_lines([RECORD | each for each in changes], coloured=False)
    ]


def test_a_record_says_who_changed_what_and_how() -> None:
    assert without_time(
        {},
        {"username": "administrator", "changed": [], "details": {"name": "a b", "others": ["config"]}},
        {"username": "", "address": "", "allocation_id": "8.1", "changed": [], "details": {"others": True}},
    ) == [
        "ann            experiment 7 state  (POST /api/v1/experiments/7/pause from 10.0.0.8)",
        'administrator  name="a b" config=…  (POST /api/v1/experiments/7/pause from 10.0.0.8)',
        "-              others=true  (POST /api/v1/experiments/7/pause in allocation 8.1)",
    ]


def test_nothing_that_was_sent_can_move_the_cursor() -> None:
    (line,) = without_time({"username": "a\x1b[2Jb", "details": {"name": "a\nb"}})
    assert line.isprintable()
