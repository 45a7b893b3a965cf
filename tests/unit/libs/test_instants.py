from __future__ import annotations

from datetime import UTC, datetime

import pytest

from libs.instants import parse_instant


@pytest.mark.parametrize(
    "text",
    ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00", "2026-01-31T14:00:00+02:00", "2026-01-31T07:30:00-04:30"],
)
def test_a_time_is_read_in_utc_whatever_its_zone(text: str) -> None:
    assert parse_instant(text) == datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert parse_instant(text).tzinfo is UTC


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "0001-01-01T00:00:00+23:00", "x" * 500])
def test_what_is_no_time_is_refused_with_the_form_of_one(text: str) -> None:
    with pytest.raises(ValueError, match="must be a time as in 2026-01-31T12:00:00Z") as raised:
        parse_instant(text)
    assert len(str(raised.value)) < 120
