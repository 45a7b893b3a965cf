"""Conditions about batches are a range of steps."""

from __future__ import annotations

import math
import operator
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from services.api.queries.charts.time_series.conditions import BATCHES, RowCondition, narrowed

HOLDS: Final = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
numbers = st.integers(-3, 25).map(float) | st.floats(-3, 25) | st.sampled_from([1e300, -1e300])
conditions = st.builds(RowCondition, st.just(BATCHES), st.sampled_from(sorted(HOLDS)), st.just("double"), numbers)


@given(st.integers(0, 20), st.integers(0, 20), st.lists(conditions, max_size=4))
def test_steps_of_the_range_are_those_that_fulfil_the_conditions(
    first: int, last: int, wanted: list[RowCondition]
) -> None:
    expected = [
        step for step in range(first, last + 1) if all(HOLDS[each.operator](step, each.value) for each in wanted)
    ]
    begin, end, left = narrowed(first, last, wanted)
    assert list(range(begin, end + 1)) == expected
    assert left == []


def test_other_conditions_are_left() -> None:
    others = [
        RowCondition(BATCHES, "= ANY", "double precision[]", [1.0]),
        RowCondition(BATCHES, "<", "double precision", math.nan),
        RowCondition(BATCHES, ">", "double precision", -math.inf),
        RowCondition("end_time", ">", "timestamptz", None),
    ]
    assert narrowed(3, 9, others) == (3, 9, others)
