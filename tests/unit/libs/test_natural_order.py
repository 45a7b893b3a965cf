"""Names in the order in which people expect them."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from libs.natural_order.keys import LONGEST, natural_sort_key

ORDER = [
    "",
    "-1",
    "0",
    "00",
    "01",
    "1",
    "001 run",
    "1 run",
    "2",
    "10",
    "99999999",
    "999999999",
    "1000000000",
    "99999999999999999999999999999999",
    "100000000000000000000000000000000",
    "a",
    "B",
    "b",
    "C",
    "run",
    "run 2",
    "Run 9",
    "run 9",
    "run 9b",
    "run 10",
    "run 10 of 9",
    "run 10 of 10",
    "run-9",
    "run-10",
    "run_2023_9",
    "run_2023_10",
    "Zebra",
    "äpfel",
    "Äpfel 9",
    "äpfel 10",
    "ö",
    "Ячмень",
    "яшма",
]
numbers = st.integers(min_value=0, max_value=10**40)


def test_order_is_the_one_that_people_expect() -> None:
    shuffled = random.Random(7).sample(ORDER, len(ORDER))
    assert sorted(shuffled, key=natural_sort_key) == ORDER


@given(numbers, numbers, st.text(max_size=5), st.text(max_size=5))
def test_digits_count_by_value(one: int, other: int, before: str, after: str) -> None:
    prefix = before.rstrip("0123456789") + "-"
    names = [f"{prefix}{value}{after.lstrip('0123456789')}" for value in (one, other)]
    assert sorted(names, key=natural_sort_key) == (names if one <= other else names[::-1])


@given(st.text(), st.text())
def test_only_equal_names_have_equal_keys(one: str, other: str) -> None:
    assert (natural_sort_key(one) == natural_sort_key(other)) == (one[:LONGEST] == other[:LONGEST])


@given(st.text(min_size=1).filter(lambda name: name[-1] not in "0123456789"), st.text(min_size=1))
def test_a_name_comes_before_those_that_begin_with_it(name: str, more: str) -> None:
    if "\x00" not in more and "\x01" not in more:
        assert natural_sort_key(name) < natural_sort_key(name + more) or len(name) >= LONGEST
