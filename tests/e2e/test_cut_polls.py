"""An api that is stopped in an orderly way, as in a rollout, while training code waits for its answers."""

from __future__ import annotations

import os
import signal

import pytest

from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem, running_system
from tests.programs import submit

ROUNDS = 3


@pytest.mark.slow
def test_training_code_notices_nothing_of_an_api_that_is_replaced() -> None:
    with running_system(slots=1) as system:
        experiment = submit(system.det(), "steps.py", hyperparameters={"steps": 0, "pause_s": 0.2})
        with system.http() as http:
            look = Looking(http)
            wait_until(lambda: look.trials(experiment), what="it has a trial")
            trial = look.trial(experiment)["id"]
            for _ in range(ROUNDS):
                before = len(look.steps(trial))
                wait_until(lambda: system.rows("select from preemption_polls"), what="the harness polls")
                replace_api(system)
                wait_until(lambda: len(look.steps(trial)) > before, what="it trains on")  # noqa: B023
            system.det()("experiment", "pause", str(experiment))
            look.wait(experiment, "STATE_PAUSED")
            wait_until(lambda: asked_to_leave(look, trial), what="the harness polls again, and was told to leave")
            said = [line["message"] for line in look.logs(trial)]
            assert not [line for line in said if "failure communicating" in line or "Traceback" in line]
            assert look.trial(experiment)["restarts"] == 0
        log = (system.layout.logs / "api.log").read_text()
    assert log.count("http.cut") == ROUNDS  # the polls, or this test shows nothing
    assert "Traceback" not in log


def replace_api(system: WholeSystem) -> None:
    before = system.pids()["api"]
    os.kill(before, signal.SIGTERM)
    wait_until(lambda: system.pids().get("api") not in (None, before), what="another api was started")
    system.wait_until_ready()


def asked_to_leave(look: Looking, trial: int) -> bool:
    return any(line.startswith("asked to leave") for line in look.printed(trial))
