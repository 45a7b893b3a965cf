"""A TensorBoard over experiments, whose files lie in storages of three types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.interactive.users import User
from tests.harness.bucket_servers import BucketServer, bucket_server
from tests.harness.looking import Looking
from tests.harness.waiting import wait_until
from tests.programs import submit

pytestmark = [pytest.mark.interactive, pytest.mark.timeout(300)]

LOSSES = [[1, 1.0], [2, pytest.approx(1 / 2)], [3, pytest.approx(1 / 3)]]
"""Steps and values that every trial has written."""


@pytest.fixture(scope="module")
def bucket() -> Iterator[BucketServer]:
    with bucket_server("s3") as server:
        yield server


def trained(user: User, **changes: Any) -> int:
    """An experiment whose trial wrote event files."""
    experiment = submit(user.det, "scalars.py", hyperparameters={}, resources={"slots_per_trial": 0}, **changes)
    Looking(user.http).wait(experiment)
    return experiment


def losses_of(user: User, task: str) -> dict[str, list[list[float]]]:
    """Steps and values of ``loss`` by run, as a chart of the TensorBoard gets them through the proxy."""
    scalars = f"/proxy/{task}/data/plugin/scalars"
    runs = user.http.get(f"{scalars}/tags").raise_for_status().json()
    found = {}
    for run, tags in runs.items():
        assert "loss" in tags
        points = user.http.get(f"{scalars}/scalars", params={"run": run, "tag": "loss"}).raise_for_status().json()
        found[run] = [[step, value] for _, step, value in points]
    return found


def places_of(experiment: int, runs: dict[str, Any]) -> list[int]:
    """How often each run names the experiment."""
    return [run.count(f"experiment/{experiment}/") for run in runs]


def test_a_tensorboard_over_two_experiments_with_their_own_storages(user: User) -> None:
    directory = user.system.layout.checkpoints / "directory"
    directory.mkdir(exist_ok=True)
    mount = {"host_path": str(directory), "container_path": "/of-tensorboards"}
    shared = trained(user)
    storage = {"type": "directory", "container_path": "/of-tensorboards"}
    own = trained(user, checkpoint_storage=storage, bind_mounts=[mount])
    printed = user.det(
        *("tensorboard", "start", "--no-browser", "--config", f"bind_mounts={json.dumps(mount)}"), str(shared), str(own)
    )
    task = printed.split("(id: ")[1].split(",")[0]
    losses = losses_of(user, task)
    assert [sorted(places_of(experiment, losses)) for experiment in (shared, own)] == [[0, 1], [0, 1]]
    assert list(losses.values()) == [LOSSES, LOSSES]
    assert "Tensorboard is running at" in printed
    user.det("tensorboard", "kill", task)
    user.wait_until_ended(task)


def test_a_tensorboard_over_a_trial_and_an_experiment(user: User) -> None:
    of_trial, whole = trained(user), trained(user)
    [trial] = Looking(user.http).trials(of_trial)
    printed = user.det("tensorboard", "start", "--no-browser", str(whole), "--trial-ids", str(trial["id"]))
    task = printed.split("(id: ")[1].split(",")[0]
    shown = user.shown("tensorboard", task)
    assert (shown["experimentIds"], shown["trialIds"]) == ([whole], [trial["id"]])
    assert any(f"trial/{trial['id']}" in run for run in losses_of(user, task))
    user.det("tensorboard", "kill", task)
    user.wait_until_ended(task)


def test_a_tensorboard_over_an_experiment_and_a_trial_in_a_bucket(user: User, bucket: BucketServer) -> None:
    variables = [f"{name}={value}" for name, value in bucket.variables.items()]
    in_bucket = {
        "checkpoint_storage": dict(bucket.section),
        "environment": {"environment_variables": variables},
    }
    whole, of_trial = trained(user, **in_bucket), trained(user, **in_bucket)
    [trial] = Looking(user.http).trials(of_trial)
    config = f"environment.environment_variables={json.dumps(variables)}"
    printed = user.det(
        *("tensorboard", "start", "--no-browser", "--config", config, str(whole), "--trial-ids", str(trial["id"]))
    )
    task = printed.split("(id: ")[1].split(",")[0]
    # It is ready with the first file that it has fetched.
    losses = wait_until(
        lambda: found if len(found := losses_of(user, task)) == 2 else None, every_s=0.5, what="both are shown"
    )
    assert [sorted(places_of(experiment, losses)) for experiment in (whole, of_trial)] == [[0, 1], [0, 1]]
    assert list(losses.values()) == [LOSSES, LOSSES]
    user.det("tensorboard", "kill", task)
    user.wait_until_ended(task)
