"""Storage configurations that mean the same have the same canonical form."""

from __future__ import annotations

from typing import Any

import pytest

from libs.errors import InvalidRequest
from services.api.actions.checkpoints.storage import canonical_storage


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
