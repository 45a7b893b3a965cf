"""Something for the client to look at."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.harness.client import Client
from tests.harness.looking import Looking
from tests.harness.whole_system import WholeSystem
from tests.programs import submit


@dataclass(frozen=True)
class Finished:
    experiment: int
    trial: int
    task: str
    checkpoint: str


@pytest.fixture(scope="session")
def det(whole_system: WholeSystem) -> Client:
    """For the many commands of these tests; whole programs are started by those of ``tests/e2e``."""
    return whole_system.det("contract", forked=True)


@pytest.fixture(scope="session")
def finished(det: Client, look: Looking) -> Finished:
    """An experiment of one trial with three steps, a validation and a checkpoint, which has completed."""
    experiment = submit(det, "steps.py", name="finished", labels=["contract"])
    look.wait(experiment)
    trial = look.trial(experiment)
    checkpoint = look.get(f"/trials/{trial['id']}/checkpoints")["checkpoints"][0]["uuid"]
    return Finished(experiment, trial["id"], trial["taskId"], checkpoint)
