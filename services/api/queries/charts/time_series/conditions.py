"""What the reports of a series have to fulfil, and the range of steps that this comes to. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

BATCHES: Final = "total_batches::double precision"
"""The column of the step."""


class RowCondition(Struct, frozen=True):
    """``column operator value`` in SQL, with the type of the value."""

    column: str
    operator: str
    kind: str
    value: Any


def narrowed(first: int, last: int, conditions: Sequence[RowCondition]) -> tuple[int, int, Sequence[RowCondition]]:
    """The first and the last step in a range that fulfil the conditions which compare steps, and the other conditions;
    the first is greater than the last where no step does."""
    left = []
    for each in conditions:
        if each.column != BATCHES or each.operator not in _BOUNDS or not math.isfinite(each.value):
            left.append(each)
        elif each.operator in {">", ">="}:
            first = max(first, min(_BOUNDS[each.operator](each.value), last + 1))
        else:
            last = min(last, max(_BOUNDS[each.operator](each.value), first - 1))
    return first, last, left


_BOUNDS: Final = {
    ">": lambda value: math.floor(value) + 1,
    ">=": math.ceil,
    "<": lambda value: math.ceil(value) - 1,
    "<=": math.floor,
}
