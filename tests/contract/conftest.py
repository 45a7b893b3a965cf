"""A client that is logged in, and something for it to look at."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.harness.client import Client
from tests.harness.whole_system import WholeSystem
from tests.programs import submit


@pytest.fixture(scope="session")
def det(whole_system: WholeSystem) -> Client:
    return whole_system.det()


@dataclass(frozen=True)
class Finished:
    experiment: int
    trial: int
    task: str
    checkpoint: str


@pytest.fixture(scope="session")
def finished(det: Client) -> Finished:
    """An experiment of one trial with three steps, a validation and a checkpoint, which has completed."""
    experiment = submit(det, "steps.py", name="finished", labels=["contract"])
    det("experiment", "wait", "--polling-interval", "1", str(experiment))
    return Finished(
        experiment,
        *det.sdk(
            """
trial = client.get_experiment(int(sys.argv[1])).list_trials()[0]
from determined.common.api import bindings
task = bindings.get_GetTrial(trial._session, trialId=trial.id).trial.taskId
result([trial.id, task, trial.list_checkpoints()[0].uuid])
""",
            experiment,
        ),
    )
