"""Pure rules of single endpoints: run metadata, storage configurations, states of checkpoints."""

from __future__ import annotations

from typing import Any

import pytest

from libs.errors import InvalidRequest
from services.api.actions.checkpoints.reports import state_after
from services.api.actions.checkpoints.storage import canonical_storage
from services.api.actions.trials.run_metadata import check_metadata


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"k": value}
    return value


@pytest.mark.parametrize(
    "metadata",
    [{}, nested(10), {"a": list(range(100))}, {"k" * 50: "v" * 5000}, {str(n): n for n in range(1000)}],
)
def test_metadata_within_limits(metadata: dict[str, Any]) -> None:
    check_metadata(metadata)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (nested(11), "metadata exceeds maximum nesting depth of 10"),
        ({"a": list(range(101))}, "metadata array exceeds maximum length of 101/100 elements"),
        ({"k" * 51: 1}, "metadata key exceeds maximum length of 50 characters"),
        ({"a": ["v" * 5001]}, "metadata value exceeds maximum length of 5000 characters"),
        ({str(n): n for n in range(1001)}, "request exceeds run metadata key count limit"),
        ({"a": {str(n): n for n in range(1000)}}, "request exceeds run metadata key count limit"),
        *(({"a": {f"x{c}": 1}}, "metadata keys can not contain the following character") for c in "$.[]"),
    ],
)
def test_metadata_beyond_limits(metadata: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        check_metadata(metadata)


def test_storage_is_the_same_with_and_without_defaults() -> None:
    short = {"type": "shared_fs", "host_path": "/tmp"}
    long = {
        **short,
        "storage_path": None,
        "propagation": "rprivate",
        "save_experiment_best": 3,
        "save_trial_best": 1,
        "save_trial_latest": 1,
    }
    assert canonical_storage(short) == canonical_storage(long)
    assert canonical_storage(long) == {**short, "storage_path": None, "propagation": "rprivate"}


def test_azure_has_only_what_is_set() -> None:
    config = {"type": "azure", "container": "c", "connection_string": "s", "account_url": None, "credential": None}
    assert canonical_storage(config) == {"type": "azure", "container": "c", "connection_string": "s"}


@pytest.mark.parametrize("config", [{"type": "tape"}, {"type": "s3"}, {"type": "gcs", "bucket": "b", "x": 1}, {}])
def test_storage_that_cannot_be(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="invalid checkpoint storage"):
        canonical_storage(config)


@pytest.mark.parametrize(
    ("left", "state"),
    [
        ({}, "DELETED"),
        ({"a": 1, "d/": 0}, "COMPLETED"),
        ({"a": 1, "d/": 0, "metadata.json": 5}, "COMPLETED"),
        ({"a": 1}, "PARTIALLY_DELETED"),
        ({"a": 2, "d/": 0}, "PARTIALLY_DELETED"),
    ],
)
def test_state_of_a_checkpoint_by_what_is_left(left: dict[str, int], state: str) -> None:
    assert state_after("COMPLETED", {"a": 1, "d/": 0}, left) == state


def test_a_lost_metadata_file_is_a_difference() -> None:
    assert state_after("COMPLETED", {"a": 1, "metadata.json": 5}, {"a": 1}) == "PARTIALLY_DELETED"
