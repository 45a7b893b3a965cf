"""Limits of the metadata that training code attaches to its run."""

from __future__ import annotations

from typing import Any

import pytest

from libs.errors import InvalidRequest
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
