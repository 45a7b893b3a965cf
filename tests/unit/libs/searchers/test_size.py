"""The size of a search: what would fill the memory is refused before anything is laid out."""

from typing import Any

import pytest

from libs.searchers.errors import InvalidSearcher
from libs.searchers.size import MAX_AT_ONCE, check_size

MANY = {"type": "double", "minval": 0, "maxval": 1, "count": 10**18}
ASHA = {
    "name": "adaptive_asha",
    "metric": "loss",
    "max_time": 100,
    "time_metric": "batches",
    "mode": "standard",
    "divisor": 4,
}

FITTING: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"name": "single"}, {"a": MANY}),
    ({"name": "random", "max_trials": 10**18, "max_concurrent_trials": 16}, {"a": MANY}),
    ({"name": "random", "max_trials": MAX_AT_ONCE, "max_concurrent_trials": 0}, {}),
    ({"name": "grid", "max_concurrent_trials": 0}, {"a": {**MANY, "count": MAX_AT_ONCE}}),
    ({**ASHA, "max_trials": 10**6, "max_concurrent_trials": 16}, {"a": MANY}),
]
TOO_LARGE: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"name": "random", "max_trials": MAX_AT_ONCE + 1, "max_concurrent_trials": 0}, {}),
    ({"name": "random", "max_trials": 10**18, "max_concurrent_trials": 10**18}, {}),
    ({"name": "grid", "max_concurrent_trials": 1}, {"a": {"b": MANY}}),
    ({"name": "grid", "max_concurrent_trials": 1}, {key: {**MANY, "count": 400} for key in "ab"}),
    ({**ASHA, "max_trials": 10**18, "max_concurrent_trials": 10**18}, {}),
]


@pytest.mark.parametrize(("searcher", "space"), FITTING)
def test_searches_that_go_on_step_by_step_may_be_long(searcher: dict[str, Any], space: dict[str, Any]) -> None:
    check_size(searcher, space)


@pytest.mark.parametrize(("searcher", "space"), TOO_LARGE)
def test_searches_that_begin_with_too_many_trials_are_refused(searcher: dict[str, Any], space: dict[str, Any]) -> None:
    with pytest.raises(InvalidSearcher, match="search begins with more than 100000 trials"):
        check_size(searcher, space)
