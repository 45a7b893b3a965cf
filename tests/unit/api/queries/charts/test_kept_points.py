"""How much of what was chosen is kept."""

from __future__ import annotations

import sys
from typing import Any, Final

from msgspec import Raw, json

from services.api.queries.charts.time_series.chosen_points import MOST_WITH_LEVELS
from services.api.queries.charts.time_series.kept_points import WINDOW_BYTES, GroupStanding, KeptPoints, SeriesWindow
from services.api.wire.charts.series import DataPoint

POINTS: Final = [DataPoint(batches=n, values={"loss": n}, time="2026-01-02T03:04:05Z") for n in range(10)]
ENCODED: Final = json.encode(POINTS)
SIZE: Final = len(ENCODED) + WINDOW_BYTES + sys.getsizeof("g") + sys.getsizeof("a")
STANDING: Final = GroupStanding(generation=3, sealed_step=100, newest_step=100)


def window(trial: int, **changes: Any) -> SeriesWindow:
    asked: dict[str, Any] = {"trial_id": trial, "group": "g", "names": ("a",), "first": 0, "last": 1000, "limit": 10}
    return SeriesWindow(**{**asked, **changes})


def test_those_that_were_asked_for_last_are_kept() -> None:
    kept = KeptPoints(most_bytes=3 * SIZE - 1)
    for trial in (1, 2):
        assert kept.keep(window(trial), STANDING, POINTS) == Raw(ENCODED)
    assert kept.find(window(1), STANDING) == Raw(ENCODED)
    kept.keep(window(1), STANDING, POINTS)
    kept.keep(window(3), STANDING, POINTS)
    assert [kept.find(window(trial), STANDING) is not None for trial in (1, 2, 3)] == [True, False, True]


def test_what_is_too_long_is_given_out_and_not_kept() -> None:
    kept = KeptPoints(most_bytes=SIZE - 1)
    assert kept.keep(window(1), STANDING, POINTS) == Raw(ENCODED)
    assert kept.find(window(1), STANDING) is None
    kept.keep(window(2), STANDING, POINTS[:5])
    assert kept.find(window(2), STANDING) is not None


def test_names_that_were_asked_for_count_as_much_as_points() -> None:
    most = 100_000
    kept = KeptPoints(most_bytes=most)
    asked = [window(trial, names=("loss", f"{trial:0{most // 4}}")) for trial in range(10)]
    for each in asked:
        kept.keep(each, STANDING, POINTS)
    found = [each.trial_id for each in asked if kept.find(each, STANDING) is not None]
    assert found == [7, 8, 9]
    kept.keep(window(10), STANDING, POINTS)
    assert kept.find(asked[7], STANDING) is not None, "what was forgotten is not counted any more"


def test_a_window_of_more_names_than_charts_have_is_not_kept() -> None:
    kept = KeptPoints()
    for count, is_kept in ((MOST_WITH_LEVELS, True), (MOST_WITH_LEVELS + 1, False)):
        asked = window(1, names=tuple(f"invented {n}" for n in range(count)))
        assert json.encode(kept.keep(asked, STANDING, POINTS)) == ENCODED
        assert (kept.find(asked, STANDING) is not None) == is_kept


def test_what_has_no_end_that_is_sealed_is_not_kept() -> None:
    kept = KeptPoints()
    newer = GroupStanding(generation=3, sealed_step=100, newest_step=101)
    assert kept.keep(window(1), newer, POINTS) is POINTS
    assert kept.find(window(1), STANDING) is None
    assert kept.keep(window(1, last=100), newer, POINTS) == Raw(ENCODED)


def test_what_may_have_changed_is_not_found() -> None:
    for standing in (GroupStanding(4, 100, 100), GroupStanding(3, 101, 101), GroupStanding(3, 100, 101)):
        kept = KeptPoints()
        kept.keep(window(1), STANDING, POINTS)
        assert kept.find(window(1), standing) is None
    kept = KeptPoints()
    kept.keep(window(1, last=100), STANDING, POINTS)
    assert kept.find(window(1, last=100), GroupStanding(3, 101, 101)) == Raw(ENCODED)
