"""The best validations so far, in the order of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from services.api.queries.trials.validation_history import Point, improvements


@pytest.mark.parametrize(
    ("smaller_is_better", "expected"), [(True, [3.0, 2.0, 1.0]), (False, [3.0, 4.0])], ids=["smaller", "larger"]
)
def test_history_has_strict_improvements_only(smaller_is_better: bool, expected: list[float]) -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)
    values = [float("nan"), 3.0, 3.0, 4.0, 2.0, float("nan"), 1.0]
    points = [Point(1, start + timedelta(seconds=number), value) for number, value in enumerate(values)]
    better = [point.value for point in improvements(points, smaller_is_better=smaller_is_better)]
    assert better[1:] == expected  # NaN is better than nothing
    assert better[0] != better[0]
