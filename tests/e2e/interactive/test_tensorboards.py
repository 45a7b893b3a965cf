"""A TensorBoard over experiments, whose files lie in storages of two types."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.interactive.users import User
from tests.harness.looking import Looking
from tests.programs import submit

pytestmark = [pytest.mark.interactive, pytest.mark.timeout(300)]


def trained(user: User, **changes: Any) -> int:
    """An experiment whose trial wrote event files."""
    experiment = submit(user.det, "scalars.py", hyperparameters={}, resources={"slots_per_trial": 0}, **changes)
    Looking(user.http).wait(experiment)
    return experiment


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
    runs = user.http.get(f"/proxy/{task}/data/plugin/scalars/tags").raise_for_status().json()
    assert sorted(run.count(f"experiment/{experiment}/") for run in runs for experiment in (shared, own)) == [
        0,
        0,
        1,
        1,
    ]
    assert all("loss" in tags for tags in runs.values())
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
    runs = user.http.get(f"/proxy/{task}/data/plugin/scalars/tags").raise_for_status().json()
    assert any(f"trial/{trial['id']}" in run for run in runs)
    user.det("tensorboard", "kill", task)
    user.wait_until_ended(task)
