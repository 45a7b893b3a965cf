"""The random stream: the same numbers as numpy's, from the same seeds."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.searchers.sampling.rng import RandomStream

DRAWS = [  # docs/reference/experiments.md 2.2
    (42, 10, [6, 3, 7, 4, 6, 9, 2, 6, 7, 4]),
    (999, 2**31, [1303213504, 648491356, 118207333]),
    (999, 2**60 - 10, [985573361606668636, 507696633659605473, 1044297212768526561]),
]

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize(("seed", "n", "expected"), DRAWS)
def test_seeds_give_the_known_numbers(seed: int, n: int, expected: list[int]) -> None:
    stream = RandomStream.from_seed(seed)
    assert [stream.intn(n) for _ in expected] == expected


def test_request_ids_are_version_4_uuids_from_four_words() -> None:
    words = np.random.RandomState(7).bytes(16)
    request_id = RandomStream.from_seed(7).request_id()
    assert request_id == "aff08813-c4e4-423a-99c2-a8c7f629a851"
    assert request_id[:13] == f"{words[:4].hex()}-{words[4:6].hex()}"


@given(seed=seeds, n=st.integers(2, 2**63 - 1))
def test_intn_draws_like_numpy(seed: int, n: int) -> None:
    stream, generator = RandomStream.from_seed(seed), np.random.RandomState(seed)
    assert [stream.intn(n) for _ in range(5)] == [int(generator.randint(0, n, dtype=np.int64)) for _ in range(5)]
    assert stream.unit() == generator.random_sample()


@given(seed=seeds, minval=st.floats(-1e6, 1e6), width=st.floats(0, 1e6))
def test_uniform_draws_like_numpy(seed: int, minval: float, width: float) -> None:
    assert RandomStream.from_seed(seed).uniform(minval, minval + width) == pytest.approx(
        np.random.RandomState(seed).uniform(minval, minval + width)
    )


def test_one_possible_value_consumes_nothing() -> None:
    stream = RandomStream.from_seed(3)
    before = stream.snapshot()
    assert stream.intn(1) == 0
    assert stream.snapshot() == before


@pytest.mark.parametrize("n", [0, -1])
def test_drawing_from_nothing_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match="cannot draw"):
        RandomStream.from_seed(0).intn(n)


@given(seed=seeds, words=st.integers(0, 1500))
def test_a_restored_stream_draws_on_where_it_was(seed: int, words: int) -> None:
    stream = RandomStream.from_seed(seed)
    for _ in range(words):
        stream.intn(2**32)
    restored = RandomStream.restore(json.loads(json.dumps(stream.snapshot())))
    assert restored.snapshot() == stream.snapshot()
    assert [restored.unit() for _ in range(3)] == [stream.unit() for _ in range(3)]


def test_the_state_is_the_seeded_key_of_the_generator() -> None:
    key = [1234]
    for i in range(1, 624):
        key.append((1812433253 * (key[-1] ^ (key[-1] >> 30)) + i) % 2**32)
    assert RandomStream.from_seed(1234).snapshot() == {"key": key, "pos": 624}


@pytest.mark.parametrize("state", [{"key": [1] * 623, "pos": 0}, {"key": [1] * 624, "pos": 625}, {"key": [1] * 624}])
def test_a_damaged_state_is_refused(state: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"Expected|missing"):
        RandomStream.restore(state)
