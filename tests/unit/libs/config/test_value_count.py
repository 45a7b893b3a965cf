"""Values of JSON are counted before anybody makes objects of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.config.value_count import has_more_values
from libs.config.yaml_text import MAX_VALUES, InvalidText, parse_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


def count(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(count, value.values()))
    return 1 + sum(map(count, value)) if isinstance(value, list) else 1


@given(JSON)
def test_no_document_that_is_small_enough_counts_as_too_large(value: object) -> None:
    # Empty lists and objects count as one more: they have a bracket and no value behind it.
    assert not has_more_values(json.dumps(value).encode(), 2 * count(value))


@pytest.mark.parametrize("many", ["[[[]]],", "1,", "{},", '"",'])
def test_lists_of_many_are_found(many: str) -> None:
    text = f"[{many * 1000}1]".encode()
    assert has_more_values(text, 900)
    assert not has_more_values(text, 5000)


def test_text_is_no_list() -> None:
    assert not has_more_values(json.dumps({"script": 'a,[{\\"' * 10_000}).encode(), 10)


def test_json_has_no_more_values_than_yaml() -> None:
    with pytest.raises(InvalidText, match=f"more than {MAX_VALUES} values"):
        parse_text("[" + "1," * MAX_VALUES + "1]")
