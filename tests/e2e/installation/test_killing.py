"""A pod of every kind is killed while trials run: they go on, and every number and every line is there once."""

from __future__ import annotations

import pytest

from tests.e2e.installation.work import Trials
from tests.harness.client import Client
from tests.harness.installation import DEPLOYMENTS, SERVERS, Installation
from tests.harness.looking import Looking

pytestmark = [pytest.mark.installation, pytest.mark.long, pytest.mark.timeout(900)]


def test_what_is_killed_comes_back_and_nothing_is_lost(installation: Installation, det: Client, look: Looking) -> None:
    trials = Trials(installation, det, look)
    for kind, workload in {**DEPLOYMENTS, **SERVERS}.items():
        installation.kill(workload)
        installation.wait_until_ready()
        trials.wait_for_progress(f"the death of {kind}")
    for workload in {**DEPLOYMENTS, **SERVERS}.values():
        installation.kill(workload)
    installation.wait_until_ready()
    trials.wait_for_progress("the death of all")
    trials.end()
