"""Tasks outlive the control plane: it is killed for a while, and pods of one and of several go on.."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from deploy.local.configuration import plan
from deploy.local.supervision import processes
from tests.e2e.pods.conftest import OnCluster, system_on
from tests.harness.client import Client
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem
from tests.programs import submit

pytestmark = [pytest.mark.cluster, pytest.mark.kubelet, pytest.mark.timeout(900)]

ENDLESS = {"steps": 0, "pause_s": 0.5}
PROGRESS = 3
"""Steps that every trial does after an outage, before the next."""


@pytest.fixture(scope="module")
def on_cluster(kubeconfig: Path, task_image: str) -> Iterator[OnCluster]:
    """Not the shared one: here services are killed."""
    with system_on(kubeconfig, task_image) as started:
        yield started


@pytest.fixture(scope="module")
def system(on_cluster: OnCluster) -> WholeSystem:
    return on_cluster.system


def outage(system: WholeSystem, names: tuple[str, ...], duration_s: float) -> None:
    """Kill processes with ``kill -9``, keep them away for a while, and wait until the system is ready again."""
    pids = system.pids()
    for name in names:
        system.layout.hold(name).touch()
    for name in names:
        os.kill(pids[name], signal.SIGKILL)
    time.sleep(duration_s)
    assert not set(names) & system.pids().keys()
    for name in names:
        system.layout.hold(name).unlink()
    processes.hang_up(system.layout)
    system.wait_until_ready()


def last_steps(look: Looking, experiment: int) -> tuple[int, int] | None:
    """Last step of the only trial in its metrics, and in its log; None while nobody answers."""
    try:
        trial = look.trial(experiment)["id"]
        printed = [line for line in look.printed(trial) if line.startswith("step ")]
        return max(look.steps(trial), default=0), int(printed[-1].split()[1]) if printed else 0
    except httpx.HTTPError:
        return None


def wait_for_progress(look: Looking, experiments: tuple[int, ...], *, after: str) -> None:
    for experiment in experiments:
        before = wait_until(lambda: last_steps(look, experiment), what="the api answers")  # noqa: B023
        assert before is not None

        def moved(experiment: int = experiment, before: tuple[int, int] = before) -> bool:
            now = last_steps(look, experiment)
            return now is not None and all(last >= then + PROGRESS for last, then in zip(now, before, strict=True))

        # The first time, its pod has not begun yet.
        wait_until(moved, timeout_s=180, every_s=0.5, what=f"experiment {experiment} goes on after {after}")


def test_trials_go_on_while_the_control_plane_is_away(
    on_cluster: OnCluster, system: WholeSystem, det: Client, look: Looking
) -> None:
    alone = submit(det, "steps.py", hyperparameters=ENDLESS)
    gang = submit(det, "gang.py", hyperparameters=ENDLESS, resources={"slots_per_trial": 2})
    killed = submit(det, "steps.py", hyperparameters=ENDLESS)
    everyone = (alone, gang, killed)
    wait_until(lambda: all(look.trials(experiment) for experiment in everyone))
    wait_for_progress(look, everyone, after="the start")
    pods = {experiment: on_cluster.pods_of(experiment) for experiment in everyone}
    assert [len(names) for names in pods.values()] == [1, 2, 1]

    outage(system, ("api",), 5)
    wait_for_progress(look, everyone, after="5 s without the api")
    outage(system, plan.SERVICES, 30)
    wait_for_progress(look, everyone, after="30 s without any service")
    outage(system, plan.PROCESSES, 5)
    wait_for_progress(look, everyone, after="5 s without anything")
    assert {experiment: on_cluster.pods_of(experiment) for experiment in everyone} == pods

    det("experiment", "kill", str(killed))
    look.wait(killed, "STATE_CANCELED")
    wait_until(lambda: not on_cluster.pods_of(killed), timeout_s=120, what="its pod is gone")

    (system.layout.checkpoints / "finish").touch()
    for experiment in (alone, gang):
        look.wait(experiment)
        trial = look.trial(experiment)
        steps = trial["totalBatchesProcessed"]
        assert (trial["state"], trial["restarts"]) == ("STATE_COMPLETED", 0)
        assert look.steps(trial["id"]) == list(range(1, steps + 1))
        printed = [line for line in look.printed(trial["id"]) if line.startswith("step ")]
        assert printed == [f"step {number}" for number in range(1, steps + 1)]


def test_a_trial_that_ends_while_nobody_looks_has_ended_well(system: WholeSystem, det: Client, look: Looking) -> None:
    experiment = submit(det, "echo begun; sleep 4; echo over; exit 0", max_restarts=0)
    failing = submit(det, "echo begun; sleep 4; exit 9", max_restarts=0)
    for each in (experiment, failing):
        wait_until(lambda: look.trials(each) and "begun" in look.printed(look.trial(each)["id"]), timeout_s=180)  # noqa: B023
    outage(system, plan.SERVICES, 8)
    look.wait(experiment)
    look.wait(failing, "STATE_ERROR")
    assert "over" in look.printed(look.trial(experiment)["id"])
    assert any("exit code 9" in line["log"] for line in look.logs(look.trial(failing)["id"]))


def test_a_pod_that_ends_while_the_log_intake_is_away_loses_no_line(
    system: WholeSystem, det: Client, look: Looking
) -> None:
    script = "echo begun; sleep 8; seq 1 500; echo last"
    variables = {"environment_variables": ["DET_LOG_WAIT_TIME=3"]}
    experiment = submit(det, script, max_restarts=0, environment=variables)
    wait_until(lambda: look.trials(experiment) and "begun" in look.printed(look.trial(experiment)["id"]), timeout_s=180)
    outage(system, ("logs",), 40)
    look.wait(experiment)
    printed = look.printed(look.trial(experiment)["id"])
    assert printed[-501:] == [*map(str, range(1, 501)), "last"]
