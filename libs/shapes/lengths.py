"""Lengths of training: so many batches, records or epochs.

Source: docs/reference/experiments.md 1.2 (length object).
"""

from __future__ import annotations

from typing import Any, Final

from libs.shapes.shape import Read, Shape, json_type, record, whole, wrong

_UNITS: Final = ("batches", "records", "epochs")
_ONE_UNIT: Final = 'a length object must have one attribute named "batches", "records", or "epochs"'


def length(least: int = 0) -> Shape:
    """An object with exactly one unit, such as ``{"batches": 100}``."""
    shape = record({unit: whole(least) for unit in _UNITS})

    def read(value: Any, path: str) -> Read:
        if not isinstance(value, dict) or sum(value.get(unit) is not None for unit in _UNITS) != 1:
            return wrong(path, _ONE_UNIT)
        return shape(value, path)

    return read


def max_length(value: Any, path: str) -> Read:
    """How long a trial trains, as a length or as a bare number of the harness's own unit."""
    shape = whole(0) if json_type(value) in ("integer", "number") else length(least=1)
    return shape(value, path)
