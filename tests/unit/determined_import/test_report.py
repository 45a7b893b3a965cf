"""A report says what agrees, and what somebody has to do something about."""

from __future__ import annotations

import pytest

from deploy.determined_import.old_database import AccessToken
from deploy.determined_import.report import ImportReport, KindReport, LeftBehind, as_text
from deploy.determined_import.searches.continuing import UnfinishedExperiments


def kind(in_source: int, imported: int, skipped: int, in_target: int) -> KindReport:
    reasons = {"gone": skipped} if skipped else {}
    return KindReport(kind="users", in_source=in_source, imported=imported, skipped=reasons, in_target=in_target)


def report(*kinds: KindReport) -> ImportReport:
    return ImportReport(
        source="old",
        kinds=list(kinds),
        left_behind=[LeftBehind(table="activity", rows=5, reason="of the web interface")],
        unfinished=UnfinishedExperiments(waiting=2, ended={7: "it cannot go on"}),
        access_tokens=[AccessToken(owner="ada", description="ci", expires_at="2999")],
    )


@pytest.mark.parametrize(
    ("numbers", "agrees"),
    [((3, 2, 1, 2), True), ((3, 2, 0, 2), False), ((3, 2, 1, 1), False), ((3, 2, 1, 3), False), ((0, 0, 0, 0), True)],
)
def test_both_sides_have_to_agree(numbers: tuple[int, int, int, int], agrees: bool) -> None:
    assert report(kind(3, 3, 0, 3), kind(*numbers)).agrees is agrees
    assert ("DO NOT AGREE" in as_text(report(kind(*numbers)))) is not agrees


def test_whatever_is_not_as_it_was_is_told() -> None:
    text = as_text(report(kind(3, 2, 1, 2)))
    for told in ("skipped 1: gone", "activity: 5 rows", "2 experiments had not ended", "experiment 7: it", "ada: ci"):
        assert told in text
