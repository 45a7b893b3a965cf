from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.tasks.interactive.durations import duration, duration_seconds, format_duration, parse_duration

CANONICAL = [
    ("10m", "10m0s"),
    ("1h30m", "1h30m0s"),
    ("90s", "1m30s"),
    ("1.5h", "1h30m0s"),
    ("1.5s", "1.5s"),
    ("1500ms", "1.5s"),
    ("250ms", "250ms"),
    ("1.5ms", "1.5ms"),
    ("20us", "20µs"),
    ("3ns", "3ns"),
    ("0", "0s"),
    ("+1m", "1m0s"),
    ("-5m", "-5m0s"),
    ("72h0.5s", "72h0m0.5s"),
    (".5h", "30m0s"),
]


@pytest.mark.parametrize(("written", "normal"), CANONICAL)
def test_durations_have_one_normal_form(written: str, normal: str) -> None:
    assert duration(written, "x").value == normal
    assert duration(normal, "x").value == normal


@pytest.mark.parametrize(
    "text",
    ["", "5", "m", "5 m", "1d", "\N{ARABIC-INDIC DIGIT ONE}m", "5m ", "1h-5m", "9" * 99 + "h", "1" * 200 + "s", "1e3s"],
)
def test_other_text_is_no_duration(text: str) -> None:
    assert parse_duration(text) is None
    [problem] = duration(text, "config.idle_timeout").problems
    assert str(problem).startswith('config.idle_timeout: invalid duration "')


def test_numbers_are_no_durations() -> None:
    [problem] = duration(600, "config.idle_timeout").problems
    assert str(problem) == "config.idle_timeout: expected string, but got integer"


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_what_is_written_is_read_back(nanos: int) -> None:
    assert parse_duration(format_duration(nanos)) == nanos


def test_seconds_of_a_duration() -> None:
    assert duration_seconds("1m30.25s") == 90.25
