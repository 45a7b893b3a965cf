"""What users do every day, with pods underneath: search, train on several pods, send files, read logs, clean up."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.pods.conftest import OnCluster
from tests.harness.client import Client
from tests.harness.installed_client import client_python
from tests.harness.kubectl import Kubectl
from tests.harness.looking import Looking
from tests.harness.processes import REPOSITORY
from tests.harness.waiting import wait_until
from tests.programs import create_arguments, created, submit

pytestmark = [pytest.mark.cluster, pytest.mark.kubelet, pytest.mark.oldest]

DIGITS = REPOSITORY / "examples" / "digits"
GOAL = 0.95
MIB = 1 << 20


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example with its images packed: the image of the pods need not have scikit-learn."""
    folder = tmp_path_factory.mktemp("context") / "digits"
    shutil.copytree(DIGITS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([str(client_python()), "data.py"], cwd=folder, check=True)
    return folder


def accuracies(look: Looking, experiment: int) -> list[float]:
    """The best of each trial."""
    trials = look.trials(experiment)
    return [trial["summaryMetrics"]["validation_metrics"]["accuracy"]["max"] for trial in trials]


def test_the_search_of_the_demo_runs_as_pods(det: Client, look: Looking, context: Path) -> None:
    experiment = created(det("experiment", "create", str(DIGITS / "search.yaml"), str(context)))
    look.wait(experiment, timeout_s=240)
    trials = look.trials(experiment)
    assert [trial["state"] for trial in trials] == ["STATE_COMPLETED"] * 8
    assert max(accuracies(look, experiment)) > GOAL
    assert all(trial["restarts"] == 0 for trial in trials)


def test_a_trial_of_two_pods_trains_as_one(det: Client, look: Looking, context: Path) -> None:
    two_pods = ("--config", "resources.slots_per_trial=2")
    experiment = created(det("experiment", "create", str(DIGITS / "one.yaml"), str(context), *two_pods))
    look.wait(experiment)
    trial = look.trial(experiment)
    assert trial["state"] == "STATE_COMPLETED"
    assert max(accuracies(look, experiment)) > GOAL
    launched = [line for line in look.printed(trial["id"]) if "Launching:" in line]
    assert len(launched) == 2, "each pod starts the user's code"


def test_a_context_that_no_config_map_could_hold(det: Client, look: Looking, tmp_path: Path) -> None:
    content = os.urandom(3 * MIB)
    (tmp_path / "large.bin").write_bytes(content)
    include = ("--include", str(tmp_path / "large.bin"))
    experiment = submit(det, "sha256sum large.bin", *include, resources={"slots_per_trial": 0})
    look.wait(experiment)
    assert f"{hashlib.sha256(content).hexdigest()}  large.bin" in look.printed(look.trial(experiment)["id"])


def test_a_followed_log_has_every_line_once(det: Client, look: Looking) -> None:
    output = det(*create_arguments(det, "lines.py", "--follow-first-trial"))
    experiment = created(output)
    look.wait(experiment)
    trial = look.trial(experiment)
    shown = [line for line in output.split("\n") if line.startswith("[20")]
    later = [line["message"].removesuffix("\n") for line in look.logs(trial["id"])]
    assert shown == later
    assert any(line.endswith("resources exited successfully with a zero exit code") for line in later)
    # The program writes 3000 numbered lines to each stream.
    for kind, stream in (("out", "stdout"), ("err", "stderr")):
        printed = look.printed(trial["id"], stdtypes=stream)
        numbered = [line for line in printed if line.startswith(f"{kind} ") and line.split()[1].isdigit()]
        assert numbered == [f"{kind} {number}" for number in range(3000)]
    for follow in ((), ("--follow",)):
        output = det("task", "logs", *follow, trial["taskId"])
        assert [line for line in output.split("\n") if line.startswith("[20")] == later


def test_checkpoints_are_deleted_by_a_pod(on_cluster: OnCluster, det: Client, look: Looking, kubectl: Kubectl) -> None:
    experiment = submit(det, "steps.py")
    look.wait(experiment)
    [checkpoint] = look.get(f"/experiments/{experiment}/checkpoints")["checkpoints"]
    stored = on_cluster.system.layout.checkpoints / checkpoint["uuid"]
    assert (stored / "step").read_text() == "3"

    nothing_kept = ("--save-experiment-best", "0", "--save-trial-best", "0", "--save-trial-latest", "0")
    det("experiment", "set", "gc-policy", "--yes", *nothing_kept, str(experiment))
    wait_until(lambda: not stored.exists(), timeout_s=120, what="the files are deleted")

    def is_deleted() -> bool:
        return str(look.get(f"/checkpoints/{checkpoint['uuid']}")["checkpoint"]["state"]) == "STATE_DELETED"

    wait_until(is_deleted, what="the checkpoint is known to be deleted")
    [task] = on_cluster.system.rows(
        "SELECT task_id FROM tasks WHERE task_type = 'CHECKPOINT_GC' AND experiment_id = $1", experiment
    )
    log = det("task", "logs", "--follow", task["task_id"])
    assert f"-gc-{experiment}" in log, "it ran as a pod"
    assert "resources exited successfully with a zero exit code" in log
    wait_until(lambda: not kubectl.names("jobs", "determined.ai/task_type=CHECKPOINT_GC"), what="its Job is gone")
