"""Limits of the metadata that training code attaches to its run."""

from __future__ import annotations

from typing import Any

import pytest

from libs.errors import InvalidRequest
from services.api.actions.trials.run_metadata import check_metadata
from tests.scenarios.run_metadata import BEYOND, WITHIN


@pytest.mark.parametrize("metadata", WITHIN)
def test_metadata_within_limits(metadata: dict[str, Any]) -> None:
    check_metadata(metadata)


@pytest.mark.parametrize(("metadata", "message"), BEYOND)
def test_metadata_beyond_limits(metadata: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        check_metadata(metadata)
