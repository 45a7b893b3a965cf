"""The state of a checkpoint, by the files that are left of it."""

from __future__ import annotations

import pytest

from services.api.actions.checkpoints.reports import state_after


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
