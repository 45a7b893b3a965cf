"""A second scheduler takes over from one that dies, before that one is back."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from deploy.local.configuration import plan
from deploy.local.configuration.status_ports import status_url
from deploy.local.supervision import processes
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.harness.whole_system import WholeSystem, running_system
from tests.programs import submit


@pytest.fixture
def system() -> Iterator[WholeSystem]:
    """Not the shared one: here a service is killed, and nobody starts it again."""
    with running_system(slots=2, standby="yes") as started:
        yield started


def schedules(system: WholeSystem, name: str) -> bool:
    log = (system.layout.logs / f"{name}.log").read_text()
    return log.count("lease.won") > log.count("lease.lost")


@pytest.mark.slow
def test_standby_decides_what_the_dead_scheduler_would_have(system: WholeSystem) -> None:
    names = ("scheduler", plan.STANDBY)
    active = wait_until(lambda: next((name for name in names if schedules(system, name)), None), what="one is active")
    (standby,) = {*names} - {active}
    assert processes.find(system.layout, standby) is not None
    url = status_url(system.layout, standby, "readyz")
    wait_until(lambda: httpx.get(url, timeout=30).is_success, what="the standby is as ready as the one that acts")
    experiment = submit(
        system.det(),
        "steps.py",
        hyperparameters={"steps": 3, "pause_s": 0, "x": {"type": "double", "minval": 0, "maxval": 1}},
        searcher={"name": "random", "metric": "loss", "max_trials": 3, "max_concurrent_trials": 1},
    )
    with system.http() as http:
        look = Looking(http)
        wait_until(lambda: look.trials(experiment), what="the search has begun")
        # Held, it stays dead: whatever is decided from here on is the standby's decision.
        system.layout.hold(active).touch()
        system.kill(active)
        wait_until(lambda: schedules(system, standby), what="the standby has taken over")
        look.wait(experiment)
        assert len(look.trials(experiment)) == 3
    assert processes.find(system.layout, active) is None
