"""Spans of what a trial did: whatever it reported, they are its time, each second once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from services.api.queries.cluster.usage_spans import TimeSpan, clipped, merged, spans

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
KINDS = ("training", "validation", "checkpointing")


def at(minutes: int) -> datetime:
    return NOON + timedelta(minutes=minutes)


REPORTS = st.lists(st.tuples(st.integers(-30, 90).map(at), st.sampled_from(KINDS))).map(sorted)


def test_each_report_ends_what_it_reports() -> None:
    reports = [
        (at(10), "training"),
        (at(20), "training"),
        (at(25), "validation"),
        (at(26), "checkpointing"),
        (at(90), "validation"),
    ]
    assert spans(at(0), at(60), reports) == [
        TimeSpan("training", at(0), at(20)),
        TimeSpan("validation", at(20), at(25)),
        TimeSpan("checkpointing", at(25), at(26)),
        TimeSpan("training", at(26), at(60)),
    ]
    assert spans(at(0), at(60), []) == [TimeSpan("training", at(0), at(60))]
    assert spans(at(0), at(0), reports) == []


def test_only_what_is_in_the_window_counts() -> None:
    assert clipped(TimeSpan("training", at(0), at(60)), at(10), at(20)) == TimeSpan("training", at(10), at(20))
    assert clipped(TimeSpan("training", at(0), at(60)), at(60), at(90)) is None


@given(reports=REPORTS, minutes=st.integers(1, 60))
def test_spans_are_the_whole_time_without_gaps(reports: list[tuple[datetime, str]], minutes: int) -> None:
    found = spans(at(0), at(minutes), reports)
    assert (found[0].start, found[-1].end) == (at(0), at(minutes))
    assert all(left.end == right.start for left, right in pairwise(found))
    assert all(span.start < span.end for span in found)
    inside = [report for report in reports if at(0) < report[0] < at(minutes)]
    assert spans(at(0), at(minutes), merged(inside)) == found, "reports may be merged beforehand"
