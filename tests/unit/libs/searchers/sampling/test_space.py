"""Decoding of hyperparameter spaces: what is refused, and where the message points."""

from typing import Any

import pytest

from libs.searchers.errors import InvalidSpace
from libs.searchers.sampling.space import parse_space

REFUSED = [
    ({"a": {"type": "categorical", "vals": []}}, r"hyperparameters\.a: .*length >= 1"),
    ({"a": {"b": {"type": "int", "minval": 0}}}, r"hyperparameters\.a\.b: .*maxval"),
    ({"a": {"type": "triangular"}}, r"hyperparameters\.a: Invalid value 'triangular'"),
    ({"a": {"type": "log", "base": 0, "minval": 0, "maxval": 1}}, r"hyperparameters\.a: .*> 0"),
    ({"a": {"type": "int", "minval": 0, "maxval": 1, "count": 0}}, r"hyperparameters\.a: .*>= 1"),
]


@pytest.mark.parametrize(("space", "message"), REFUSED)
def test_a_space_that_cannot_be_searched_is_refused_by_name(space: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpace, match=message):
        parse_space(space)


def test_null_counts_are_no_counts() -> None:
    axis = {"type": "int", "minval": 0, "maxval": 1}
    assert parse_space({"a": axis}) == parse_space({"a": {**axis, "count": None}})
