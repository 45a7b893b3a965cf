"""What people did is there when the client says so: nobody has to wait before looking, or before going on."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.contract.test_commands import row, table
from tests.harness.client import Client
from tests.harness.looking import Looking
from tests.programs import configuration, submit

ALL_SLOTS = {"resources": {"slots_per_trial": 8}}


@pytest.fixture
def full(det: Client, look: Looking) -> Iterator[None]:
    """An experiment has all slots, so that every other one waits in the queue."""
    first = submit(det, "sleep 1000", **ALL_SLOTS)
    look.wait(first, "STATE_RUNNING")
    yield
    det("experiment", "kill", str(first))
    look.wait(first, "STATE_CANCELED")


def trial_of(det: Client, experiment: int) -> dict[str, str]:
    [trial] = table(det("experiment", "list-trials", str(experiment)))
    return trial


def queued(det: Client, experiment: int) -> bool:
    return any(f"({experiment})" in job["Job Name"] for job in table(det("job", "list")))


def test_what_is_paused_has_trials_and_ends_at_once(det: Client) -> None:
    experiment = submit(det, "steps.py", "--paused")
    assert trial_of(det, experiment)["State"] == "PAUSED"
    det("experiment", "kill", str(experiment))
    assert row(det("experiment", "list"), "ID", experiment)["State"] == "CANCELED"
    assert trial_of(det, experiment)["State"] == "CANCELED"
    det("experiment", "archive", str(experiment))
    det("experiment", "delete", "--yes", str(experiment))


@pytest.mark.usefixtures("full")
def test_the_queue_follows_what_is_asked_of_those_that_wait(det: Client) -> None:
    experiment = submit(det, "sleep 1000", **ALL_SLOTS)
    assert trial_of(det, experiment)["State"] == "QUEUED"
    assert queued(det, experiment)
    det("experiment", "pause", str(experiment))
    assert trial_of(det, experiment)["State"] == "PAUSED"
    assert not queued(det, experiment)
    det("experiment", "activate", str(experiment))
    assert queued(det, experiment)
    det("experiment", "set", "priority", str(experiment), "17")
    [moved] = [job for job in table(det("job", "list")) if job["Priority"] == "17"]
    assert f"({experiment})" in moved["Job Name"]
    det("trial", "kill", trial_of(det, experiment)["Trial ID"])
    assert trial_of(det, experiment)["State"] == "CANCELED"
    assert row(det("experiment", "list"), "ID", experiment)["State"] == "CANCELED"
    assert not queued(det, experiment)


@pytest.mark.usefixtures("full")
def test_the_sdk_lists_the_trials_of_what_it_has_just_created(det: Client) -> None:
    searcher = {"name": "random", "metric": "loss", "max_trials": 5, "max_concurrent_trials": 3}
    seen = det.sdk(
        """
experiment = client.create_experiment(config=json.loads(sys.argv[1]), model_dir=None)
trials = experiment.list_trials()
seen = {"trials": len(trials), "states": sorted({trial.state.value for trial in trials})}
experiment.cancel()
experiment.reload()
seen["canceled"] = experiment.state.value
result(seen)
""",
        json.dumps(configuration("sleep 1000", searcher=searcher, **ALL_SLOTS)),
    )
    assert seen == {"trials": 3, "states": ["STATE_QUEUED"], "canceled": "STATE_CANCELED"}
