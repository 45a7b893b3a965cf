"""More and fewer pods of each service, and new ones in place of old ones, while people and tasks use them."""

from __future__ import annotations

import pytest

from tests.e2e.installation.work import Trials, commands_about, typing
from tests.harness.client import Client
from tests.harness.installation import DEPLOYMENTS, PATIENT, Installation
from tests.harness.looking import Looking

pytestmark = [pytest.mark.installation, pytest.mark.long, pytest.mark.timeout(900)]

SCALED = ("api", "scheduler", "logs")


def test_scaling_and_rolling_restarts_fail_no_command_and_disturb_no_task(
    installation: Installation, det: Client, look: Looking
) -> None:
    trials = Trials(installation, det, look)
    person = Client(installation.url, det.home, env=PATIENT, forked=True)
    with typing(person, commands_about(trials.all[0])) as typed:
        installation.upgrade(*(f"--set={service}.replicas=2" for service in SCALED))
        for service in SCALED:
            assert installation.replicas(DEPLOYMENTS[service]) == 2
        for service, deployment in DEPLOYMENTS.items():
            installation.restart(deployment)
            trials.wait_for_progress(f"a rolling restart of {service}")
        installation.upgrade()
        for service in SCALED:
            assert installation.replicas(DEPLOYMENTS[service]) == 1
        trials.wait_for_progress("scaling back")
    assert typed.failures == []
    assert typed.commands > 50
    trials.end()


def test_whoever_follows_a_log_when_the_api_is_restarted_is_told_how_to_go_on(
    installation: Installation, det: Client, look: Looking
) -> None:
    """The client does not repeat what it has half read; an end in order would say that there is no more to come."""
    trials = Trials(installation, det, look)
    trial = str(trials.all[0].trial)
    person = Client(installation.url, det.home, env=PATIENT)
    with typing(person, [("trial", "logs", "-f", trial)]) as typed:
        installation.restart(DEPLOYMENTS["api"])
        trials.wait_for_progress("a rolling restart of the api")
        trials.end()
    (cut,) = typed.failures
    assert "Traceback" not in cut
    assert f"To reopen log stream, run: det trial logs -f {trial}" in cut
    assert typed.commands > 1
