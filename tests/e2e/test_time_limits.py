"""Time limits through the unmodified client and harness (docs/scheduling.md)."""

from __future__ import annotations

import pytest

from tests.harness.client import Client
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.programs import submit

pytestmark = pytest.mark.slow


def test_a_trial_saves_a_checkpoint_at_the_end_of_its_time(det: Client, look: Looking) -> None:
    endless = {"steps": 10**6, "pause_s": 0.2}
    limited = {"slots_per_trial": 1, "time_limit": "45s"}
    experiment = submit(det, "steps.py", hyperparameters=endless, resources=limited)
    look.wait(experiment)
    trial = look.trial(experiment)
    printed = look.printed(trial["id"])
    assert printed[-1].startswith("asked to leave after step ")
    assert (trial["state"], trial["restarts"], trial["checkpointCount"]) == ("STATE_COMPLETED", 0, 1)
    said = "".join(line["message"] for line in look.logs(trial["id"]))
    assert "reached its time limit of 45s" in said
    assert f"trial {trial['id']} reached its time limit of 45s" in det("experiment", "describe", str(experiment))
    assert "time_limit: 45" in det("experiment", "config", str(experiment))


def test_a_short_job_starts_before_the_reservation_of_a_large_one(det: Client, look: Looking) -> None:
    def sleeping(slots: int, **limit: str) -> int:
        return submit(det, "sleep 1000", resources={"slots_per_trial": slots, **limit})

    def reason(experiment: int) -> str:
        job = look.experiment(experiment)["jobId"]
        return "".join(one["reason"] for one in look.get("/resolute/waiting", jobId=job)["waiting"])

    experiments = [sleeping(6, time_limit="4h")]
    wait_until(lambda: look.state(experiments[0]) == "STATE_RUNNING", what="the first one runs")
    experiments.append(sleeping(8))
    wait_until(lambda: bool(reason(experiments[1])), what="the large one waits")
    experiments.append(sleeping(1, time_limit="6h"))
    kept = "the free slots are kept for a request that has waited longer"
    wait_until(lambda: reason(experiments[2]).startswith(kept), what="the longer one waits")
    experiments.append(sleeping(1, time_limit="2h"))
    wait_until(lambda: look.state(experiments[3]) == "STATE_RUNNING", what="the short one runs")
    for experiment in reversed(experiments):
        det("experiment", "kill", str(experiment))
