"""Changes of the resources and the checkpoint storage of an experiment."""

from __future__ import annotations

from typing import Any

import pytest

from libs.errors import InvalidRequest
from services.api.actions.experiments.edit import changed_resources, changed_storage
from services.api.wire.experiments.experiments import (
    PatchCheckpointStorage,
    PatchResources,
)

RESOURCES: dict[str, Any] = {"slots_per_trial": 2, "max_slots": 4, "priority": 42, "weight": 1}


@pytest.mark.parametrize(
    ("patch", "changed"),
    [
        (PatchResources(), {}),
        (PatchResources(max_slots=None), {"max_slots": None}),
        (PatchResources(max_slots=8, priority=1, weight=2.5), {"max_slots": 8, "priority": 1, "weight": 2.5}),
    ],
)
def test_changed_resources(patch: PatchResources, changed: dict[str, Any]) -> None:
    assert changed_resources(RESOURCES, patch) == {**RESOURCES, **changed}


@pytest.mark.parametrize(
    "patch",
    [
        PatchResources(priority=0),
        PatchResources(priority=100),
        PatchResources(weight=0),
        PatchResources(weight=float("nan")),
        PatchResources(weight=float("inf")),
        PatchResources(max_slots=1),
    ],
)
def test_resources_no_configuration_may_have(patch: PatchResources) -> None:
    with pytest.raises(InvalidRequest):
        changed_resources(RESOURCES, patch)


def test_changed_storage_keeps_what_is_not_mentioned() -> None:
    storage = {"type": "s3", "bucket": "b", "save_trial_best": 1}
    assert changed_storage(storage, PatchCheckpointStorage(save_trial_best=0, save_experiment_best=3)) == {
        "type": "s3",
        "bucket": "b",
        "save_trial_best": 0,
        "save_experiment_best": 3,
    }
