"""The order of lists, in words that indexes are in: NULLs come last, and are spoken of only where there may be some.

An index on ``id``, read backwards, is ``id DESC NULLS FIRST``: for ``id DESC NULLS LAST`` the database sorts all rows,
although no id is NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Column, ColumnElement, Table
from sqlalchemy.sql.util import find_tables

from libs.db.tables.experiments import natural_experiment_name


def ascending(expression: ColumnElement[Any]) -> ColumnElement[Any]:
    """The smallest first; PostgreSQL puts NULLs last by itself."""
    return expression.asc()


def descending(expression: ColumnElement[Any]) -> ColumnElement[Any]:
    """The largest first, NULLs last."""
    return expression.desc() if is_never_null(expression) else expression.desc().nulls_last()


def is_never_null(expression: ColumnElement[Any]) -> bool:
    """Whether rows of a list have a value there for certain.

    Lists join tables so that each row has its one partner; what may lack one is joined under an alias.
    """
    if expression is natural_experiment_name:
        return True
    return isinstance(expression, Column) and isinstance(expression.table, Table) and not expression.nullable


def asked_tables(expressions: Iterable[ColumnElement[Any]]) -> set[Any]:
    """The tables and aliases that conditions and orders speak of: a list joins no other to find out who is in it."""
    return {table for expression in expressions for table in find_tables(expression, check_columns=True)}
