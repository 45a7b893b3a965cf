"""Summaries of trials that train here are rows, and the row of the trial follows them."""

from __future__ import annotations

import time

from tests.harness.client import Client
from tests.harness.looking import Looking
from tests.harness.whole_system import WholeSystem
from tests.programs import submit

SETTLED_WITHIN_S = 60


def test_reports_are_appended_and_the_row_of_the_trial_follows(
    det: Client, look: Looking, whole_system: WholeSystem
) -> None:
    experiment = submit(det, "steps.py", hyperparameters={"steps": 3, "pause_s": 0})
    look.wait(experiment)
    (trial,) = look.trials(experiment)
    ends_at = time.monotonic() + SETTLED_WITHIN_S
    while whole_system.rows("SELECT FROM metric_marks WHERE trial_id = $1", trial["id"]):
        assert time.monotonic() < ends_at
        time.sleep(0.5)
    (row,) = whole_system.rows("SELECT * FROM trials WHERE id = $1", trial["id"])
    assert (row["summary_in_rows"], row["total_batches"]) == (True, 3)
