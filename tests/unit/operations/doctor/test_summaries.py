from __future__ import annotations

import msgspec
import pytest

from deploy.operations.doctor.summaries import Summaries, about_summaries

FINE = Summaries(lagging=0, longest_s=3.0, in_columns=0)


@pytest.mark.parametrize(
    ("changes", "levels", "says"),
    [
        ({}, ["ok", "ok"], "none is in the row of its trial alone"),
        (
            {"lagging": 2, "longest_s": 7200.0},
            ["warning", "ok"],
            "of 2 trials have not followed their reports, for 120",
        ),
        ({"in_columns": 17}, ["ok", "ok"], "of 17 trials are in their own row alone"),
        ({"in_columns": None}, ["ok", "ok"], "too many trials"),
    ],
)
def test_what_lags_is_a_warning_and_what_is_to_be_moved_is_counted(
    changes: dict[str, object], levels: list[str], says: str
) -> None:
    findings = about_summaries(msgspec.structs.replace(FINE, **changes))
    assert [finding.level for finding in findings] == levels
    assert says in " ".join(finding.says for finding in findings)
    assert all(finding.remedy for finding in findings if finding.level == "warning")
