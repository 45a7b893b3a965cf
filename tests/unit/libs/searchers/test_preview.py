"""What a search would do, told before it runs."""

from typing import Any

import pytest

from libs.searchers.errors import InvalidSearcher
from libs.searchers.methods.definition import PreviewTrial
from libs.searchers.preview import preview
from tests.unit.libs.searchers.methods.test_brackets import adaptive

GRID = {"x": {"type": "int", "minval": 0, "maxval": 3, "count": 4}}
HALVING = {"name": "async_halving", "metric": "loss", "time_metric": "batches", "max_time": 900}

LENGTHS = [  # docs/reference/experiments.md 3.6; units -> trials
    (adaptive("standard", 900, 10, 3, 5, max_rungs=10), {100: 5, 300: 3, 900: 2}),
    (adaptive("standard", 100, 100, 4, 16), {1: 53, 6: 30, 25: 13, 100: 4}),
    (adaptive("aggressive", 100, 100, 4, 16), {1: 75, 6: 19, 25: 5, 100: 1}),
    (adaptive("conservative", 100, 100, 4, 16), {1: 51, 6: 28, 25: 13, 100: 8}),
    (adaptive("standard", 1000, 16, 4, 16), {62: 9, 250: 5, 1000: 2}),
    (adaptive("standard", 400, 5, 4, 16), {100: 3, 400: 2}),
    ({**HALVING, "num_rungs": 3, "divisor": 3, "max_trials": 10}, {100: 7, 300: 2, 900: 1}),
    ({**HALVING, "num_rungs": 3, "divisor": 3, "max_trials": 1}, {900: 1}),
]


@pytest.mark.parametrize(("section", "expected"), LENGTHS)
def test_trials_by_the_length_of_their_training(section: dict[str, Any], expected: dict[int, int]) -> None:
    assert preview(section, {}) == [PreviewTrial(count, "batches", units) for units, count in expected.items()]


@pytest.mark.parametrize(
    ("section", "count"),
    [({"name": "single"}, 1), ({"name": "random", "max_trials": 7}, 7), ({"name": "grid"}, 4)],
)
def test_trials_that_train_to_completion(section: dict[str, Any], count: int) -> None:
    assert preview(section, GRID) == [PreviewTrial(count, max_length=True)]


@pytest.mark.parametrize("name", ["custom", "sync_halving", "adaptive", "adaptive_simple", "nonsense"])
def test_searchers_that_cannot_be_run_have_no_preview(name: str) -> None:
    with pytest.raises(InvalidSearcher, match=r"^invalid searcher configuration$"):
        preview({"name": name}, {})
