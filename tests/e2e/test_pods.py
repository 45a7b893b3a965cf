"""The example of a new user, as pods of a cluster whose nodes run containers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.client import client_python
from tests.harness.looking import Looking
from tests.harness.processes import REPOSITORY
from tests.harness.whole_system import WholeSystem, running_system
from tests.programs import created

pytestmark = pytest.mark.cluster

DIGITS = REPOSITORY / "examples" / "digits"
GOAL = 0.95


@pytest.fixture(scope="module")
def on_cluster(kubeconfig: Path) -> Iterator[WholeSystem]:
    image = os.environ.get("RESOLUTE_TEST_IMAGE")
    if not image:
        pytest.skip("needs nodes that run containers: set RESOLUTE_TEST_IMAGE to an image with determined and numpy")
    with running_system(kubeconfig=str(kubeconfig), image=image, shipper="builtin") as system:
        yield system


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


def test_the_search_of_the_demo_runs_as_pods(on_cluster: WholeSystem, context: Path) -> None:
    det = on_cluster.det()
    experiment = created(det("experiment", "create", str(DIGITS / "search.yaml"), str(context)))
    with on_cluster.http() as http:
        look = Looking(http)
        look.wait(experiment)
        trials = look.trials(experiment)
        assert [trial["state"] for trial in trials] == ["STATE_COMPLETED"] * 8
        assert max(accuracies(look, experiment)) > GOAL
        assert all(trial["restarts"] == 0 for trial in trials)


def test_a_trial_of_two_pods_trains_as_one(on_cluster: WholeSystem, context: Path) -> None:
    det = on_cluster.det()
    two_pods = ("--config", "resources.slots_per_trial=2")
    experiment = created(det("experiment", "create", str(DIGITS / "one.yaml"), str(context), *two_pods))
    with on_cluster.http() as http:
        look = Looking(http)
        look.wait(experiment)
        [trial] = look.trials(experiment)
        assert trial["state"] == "STATE_COMPLETED"
        assert max(accuracies(look, experiment)) > GOAL
        launched = [line for line in look.printed(trial["id"]) if "Launching:" in line]
        assert len(launched) == 2, "each pod starts the user's code"
