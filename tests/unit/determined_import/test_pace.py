"""How far an import is, and how long the rest takes."""

from __future__ import annotations

import pytest

from deploy.determined_import.pace import Pace


@pytest.mark.parametrize(
    ("rows", "more", "seconds", "said"),
    [
        (100, 50, 10.0, "metrics: 50 of 100, about 10 s remain for 50 rows"),
        (1000, 100, 60.0, "metrics: 100 of 1000, about 9 min remain for 900 rows"),
        (1_000_000, 1000, 10.0, "metrics: 1000 of 1000000, about 2 h 46 min remain for 999000 rows"),
        (100, 100, 10.0, "metrics: 100 of 100"),
    ],
)
def test_what_is_done_of_all_and_the_time_that_remains_are_said(
    rows: int, more: int, seconds: float, said: str
) -> None:
    assert Pace({"metrics": rows}, now=5.0).line("metrics", more, more=more, now=5.0 + seconds) == said


def test_what_was_done_before_takes_no_time() -> None:
    pace = Pace({"metrics": 100}, now=0.0)
    pace.passed_over(50)
    assert pace.line("metrics", 75, more=25, now=5.0) == "metrics: 75 of 100, about 5 s remain for 25 rows"
