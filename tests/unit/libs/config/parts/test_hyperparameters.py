"""The hyperparameter space: what is accepted, and what every value becomes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from libs.config import InvalidConfig, parse_experiment_config
from libs.config.parts.hyperparameters import hyperparameters
from libs.shapes.problems import ROOT

ACCEPTED: list[tuple[str, Any]] = [
    ("a: null", {"a": {"type": "const", "val": None}}),
    ("a: true", {"a": {"type": "const", "val": True}}),
    ("a: 1", {"a": {"type": "const", "val": 1}}),
    ("a: 1.0", {"a": {"type": "const", "val": 1.0}}),
    ("a: [1, fish]", {"a": {"type": "const", "val": [1, "fish"]}}),
    ("a: {red: fish}", {"a": {"red": {"type": "const", "val": "fish"}}}),
    ("a: {}", {"a": {}}),
    ("type: 5", {"type": {"type": "const", "val": 5}}),
    ("a: {type: const, val: [1, {type: int}]}", None),
    ("a: {type: const, val: {x: y}}", None),
    ("a: {type: const, val: null}", None),
    ("a: {type: int, minval: 2, maxval: 3}", None),
    ("a: {type: int, minval: 2, maxval: 3, count: null}", {"a": {"type": "int", "minval": 2, "maxval": 3}}),
    ("a: {type: int, minval: -2, maxval: 3, count: 4}", None),
    ("a: {type: double, minval: 0.5, maxval: 1}", None),
    ("a: {type: log, minval: 1, maxval: 10, base: 1}", None),
    ("a: {type: categorical, vals: [1, null, [x]]}", None),
]


@pytest.mark.parametrize(("text", "normal"), ACCEPTED, ids=[text for text, _ in ACCEPTED])
def test_space_is_accepted_and_normalised(text: str, normal: Any) -> None:
    space = yaml.safe_load(text)
    read = hyperparameters(space, ROOT)
    assert read.value == (space if normal is None else normal)
    assert read.problems == ()
    assert hyperparameters(read.value, ROOT) == read


REFUSED = [
    ("a: {type: int, minval: 2, maxval: 2}", f"{ROOT}.a: minval must be less than maxval"),
    ("a: {type: int, minval: 2, maxval: 1}", f"{ROOT}.a: minval must be less than maxval"),
    ("a: {type: double, minval: 2, maxval: 1}", f"{ROOT}.a: minval must be less than maxval"),
    ("a: {type: log, minval: 2, maxval: 1, base: 10}", f"{ROOT}.a: minval must be less than maxval"),
    ("a: {type: log, minval: 1, maxval: 2, base: 0}", f"{ROOT}.a.base: must be > 0 but found 0"),
    ("a: {type: log, minval: 1, maxval: 2}", f"{ROOT}.a: base is a required property"),
    ("a: {type: int, minval: 1.5, maxval: 2}", f"{ROOT}.a.minval: expected integer, but got number"),
    ("a: {type: int, minval: null, maxval: 2}", f"{ROOT}.a: minval is a required property"),
    ("a: {type: int, minval: 1, maxval: 2, count: 0}", f"{ROOT}.a.count: must be >= 1 but found 0"),
    ("a: {type: int, minval: 1, maxval: 2, vals: []}", f'{ROOT}.a: additionalProperties "vals" not allowed'),
    ("a: {type: int, minval: 0, maxval: 9223372036854775808}", f"{ROOT}.a.maxval: must be <= 9223372036854775807"),
    ("a: {type: double, minval: -1.0e+308, maxval: 1.0e+308}", f"{ROOT}.a: minval and maxval are too far apart"),
    (f"a: {{type: double, minval: 0, maxval: 1{'0' * 400}}}", f"{ROOT}.a: minval and maxval are too far apart"),
    ("a: {type: log, minval: 0, maxval: 309, base: 10}", f"{ROOT}.a: base raised to minval or to maxval is too large"),
    ("a: {type: log, minval: -309, maxval: 0, base: 0.1}", f"{ROOT}.a: base raised to minval or to maxval is too"),
    (f"a: {{type: log, minval: 1, maxval: 2, base: 1{'0' * 400}}}", f"{ROOT}.a: base raised to minval or to maxval"),
    ("one: {a: {type: categorical}}", f"{ROOT}.one.a: vals is a required property"),
    ("a: {type: categorical, vals: []}", f"{ROOT}.a: vals must not be empty"),
    ("a: {type: const}", f"{ROOT}.a: val is a required property"),
    *(
        (f"a: {{type: {kind}}}", f'{ROOT}.a: if a hyperparameter object\'s ["type"] is set, it must be one of "int", ')
        for kind in ("bogus", "null", "[int]", "1")
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text for text, _ in REFUSED])
def test_mistake_is_reported_at_the_hyperparameter(text: str, message: str) -> None:
    problems = hyperparameters(yaml.safe_load(text), ROOT).problems
    assert [str(problem) for problem in problems if message in str(problem)]


RANGE = "{type: int, minval: 1, maxval: 2}"
COUNTED = "{type: int, minval: 1, maxval: 2, count: 2}"
GRIDS = [
    (f"a: {{b: {COUNTED}}}", []),
    ("a: {type: categorical, vals: [1]}", []),
    (f"a: {{b: {RANGE}}}", ["a.b"]),
    ("a: {type: double, minval: 1, maxval: 2, count: null}", ["a"]),
    ("a: {type: log, base: 10, minval: 1, maxval: 2}", ["a"]),
    (f"list_hparam: [1, {COUNTED}, {RANGE}]", ["list_hparam[2]"]),
    (f"list_hparam: [[{RANGE}], {{x: {RANGE}}}]", ["list_hparam[0][0]", "list_hparam[1].x"]),
    (f"a: {{type: const, val: {RANGE}}}", []),
]


@pytest.mark.parametrize(("space", "places"), GRIDS, ids=[space for space, _ in GRIDS])
def test_grid_search_needs_a_count_for_every_range(space: str, places: list[str]) -> None:
    lines = [f"<config>.hyperparameters.{place}: grid search is in use but count was not provided" for place in places]
    text = f"searcher: {{name: grid}}\nhyperparameters:\n  {space}"
    if not places:
        assert parse_experiment_config(text)
        return
    with pytest.raises(InvalidConfig) as caught:
        parse_experiment_config(text)
    assert str(caught.value).endswith("config is invalid: " + "\n".join(lines))
    assert parse_experiment_config(text.replace("grid", "random"))


def test_lists_may_hold_text_that_looks_like_a_range() -> None:
    text = "searcher: {name: grid}\nhyperparameters: {a: [{type: bogus}, {type: [1]}, {type: {}}, null]}"
    assert parse_experiment_config(text)
