"""Conditions on lists of any length.

``column.in_(values)`` makes a parameter of every value, and a statement has 32,767 of them at most (asyncpg; the wire
protocol of PostgreSQL, message Bind). Here the whole list is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, any_, literal


def any_of(column: ColumnElement[Any], values: Iterable[Any]) -> ColumnElement[bool]:
    """Whether ``column`` is one of ``values``, none of which is None; of no values it never is."""
    return column == any_(literal(list(values), ARRAY(column.type)))
