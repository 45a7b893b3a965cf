"""Sampling: the hyperparameters, ids and seeds that a search seed has always given."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.searchers.actions import Create
from libs.searchers.sampling.hparams import sample_hparams
from libs.searchers.sampling.rng import RandomStream
from libs.searchers.sampling.space import parse_space
from libs.searchers.sampling.trial_source import TrialSource

X = {"x": {"type": "int", "minval": 0, "maxval": 10}}
ALL_KINDS = {
    "log": {"type": "log", "base": 10, "minval": -2, "maxval": 2},
    "int": {"type": "int", "minval": 0, "maxval": 100},
    "double": {"type": "double", "minval": 0, "maxval": 100},
    "const": {"type": "const", "val": "val"},
    "cat": {"type": "categorical", "vals": [0, 1, 2, 3, 4, 5, 6]},
}

CREATED = [  # docs/reference/experiments.md 2.2
    (
        0,
        X,
        [
            Create("c0cc21d8-43b3-4e9a-bb52-a2dbc3767d8b", 1491434855, {"x": 5}),
            Create("d3dea19f-1551-49a5-b2d6-666224b70570", 1277901399, {"x": 9}),
            Create("d8bd840e-589a-42f6-8ccd-cc453a392962", 2051556033, {"x": 6}),
        ],
    ),
    (
        1,
        X,
        [
            Create("eb8047ff-8c2f-47b8-8814-bceeff7e0700", 550290313, {"x": 5}),
            Create("4fcb9125-c053-403c-9080-a31781508665", 799981516, {"x": 5}),
            Create("edaa7658-fc79-44ab-868d-9265197d7fef", 166716594, {"x": 7}),
        ],
    ),
    (
        102932948,
        X,
        [
            Create("d49a37a5-7d81-49c0-9ee2-9155b24c6076", 203862619, {"x": 8}),
            Create("036591c6-5afb-4fa1-98e5-3ccd8c93965d", 1185153214, {"x": 8}),
            Create("c1141e69-84ef-4444-9ccf-3d2e52935455", 729140226, {"x": 10}),
        ],
    ),
    (
        0,
        ALL_KINDS,
        [
            Create(
                "c3767d8b-677d-45d8-89a4-746cd3dea19f",
                626610453,
                {"cat": 4, "const": "val", "double": 59.28446182250183, "int": 64, "log": 2.5766385746135883},
            ),
            Create(
                "8ccdcc45-3a39-4962-8142-487ae67daeca",
                1340754471,
                {"cat": 2, "const": "val", "double": 43.75872112626925, "int": 70, "log": 0.016859780231705836},
            ),
        ],
    ),
    (7, {}, [Create("aff08813-c4e4-423a-99c2-a8c7f629a851", 1882953283, {})]),
]


@pytest.mark.parametrize(("seed", "space", "expected"), CREATED)
def test_seeds_give_the_known_trials(seed: int, space: dict[str, Any], expected: list[Create]) -> None:
    trials = TrialSource(parse_space(space), RandomStream.from_seed(seed))
    assert [trials.sampled() for _ in expected] == expected


def test_constants_may_be_written_as_plain_values() -> None:
    plain = {"a": 1, "b": [{"type": "int", "minval": 0, "maxval": 9}], "c": None, "d": {"e": "text"}}
    stored = {
        "a": {"type": "const", "val": 1},
        "b": {"type": "const", "val": plain["b"]},
        "c": {"type": "const", "val": None},
        "d": {"e": {"type": "const", "val": "text"}},
    }
    assert parse_space(plain) == parse_space(stored)
    assert sample_hparams(parse_space(stored), RandomStream.from_seed(0)) == plain


spaces = st.recursive(
    st.sampled_from([*ALL_KINDS.values(), "plain"]),
    lambda nodes: st.dictionaries(st.sampled_from("abcdef"), nodes, max_size=4),
    max_leaves=8,
).filter(lambda space: isinstance(space, dict) and "type" not in space)


def _shuffled(space: Any) -> Any:
    if not isinstance(space, dict):
        return space
    return {key: _shuffled(space[key]) for key in reversed(space)}


@given(space=spaces, seed=st.integers(0, 2**32 - 1))
def test_the_order_of_keys_does_not_matter_at_any_depth(space: dict[str, Any], seed: int) -> None:
    sampled = sample_hparams(parse_space(space), RandomStream.from_seed(seed))
    assert sampled == sample_hparams(parse_space(_shuffled(space)), RandomStream.from_seed(seed))


@given(seed=st.integers(0, 2**32 - 1), minval=st.integers(-50, 50), width=st.integers(0, 50))
def test_draws_stay_inside_their_bounds(seed: int, minval: int, width: int) -> None:
    bounds = {"minval": minval, "maxval": minval + width}
    space = {"int": {"type": "int", **bounds}, "double": {"type": "double", **bounds}}
    sampled = sample_hparams(parse_space(space), RandomStream.from_seed(seed))
    assert all(minval <= value <= minval + width for value in sampled.values())
    assert isinstance(sampled["int"], int)
