"""Amounts as people write them, and what nobody can mean."""

from __future__ import annotations

import pytest

from libs.podspec.quantities import quantity, units


@pytest.mark.parametrize(
    ("resource", "written", "expected"),
    [
        ("cpu", "500m", 500),
        ("cpu", 2, 2000),
        ("memory", "64Gi", 64 * 2**30),
        ("memory", "1e3", 1000),
        ("memory", "1.5k", 1500),
        ("nvidia.com/gpu", "0.1", 1),
        ("memory", "-1", 0),
        ("memory", "much", 0),
        ("memory", "1e99", 2**63 - 1),
        ("memory", "9" * 40, 2**63 - 1),
    ],
)
def test_units(resource: str, written: str | float, expected: int) -> None:
    assert units(resource, written) == expected


def test_truth_is_no_amount_and_does_not_change_what_one_is() -> None:
    resource = "example.com/of-this-test"  # of which nothing is remembered
    assert [units(resource, value) for value in (True, 1)] == [0, 1]


@pytest.mark.parametrize("written", ["1e99999999", "1e999", "9" * 1000, "1." + "0" * 1000])
def test_what_would_take_seconds_to_compute_with_is_no_amount(written: str) -> None:
    assert quantity(written) == 0
