"""The order of lists, in words that indexes are in: NULLs come last, and are spoken of only where there may be some.

An index on ``id``, read backwards, is ``id DESC NULLS FIRST``: for ``id DESC NULLS LAST`` the database sorts all rows,
although no id is NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Column, ColumnElement, FromClause, Table, UnaryExpression
from sqlalchemy.sql.operators import asc_op, desc_op, nulls_last_op
from sqlalchemy.sql.util import find_tables

from libs.db.tables.experiments import natural_experiment_name
from libs.db.tables.users import users
from libs.db.tables.workspaces import projects, workspaces


def ascending(expression: ColumnElement[Any]) -> ColumnElement[Any]:
    """The smallest first; PostgreSQL puts NULLs last by itself."""
    return expression.asc()


def descending(expression: ColumnElement[Any]) -> ColumnElement[Any]:
    """The largest first, NULLs last."""
    return expression.desc() if is_never_null(expression) else expression.desc().nulls_last()


def backwards(order: Iterable[ColumnElement[Any]]) -> list[ColumnElement[Any]]:
    """The order of a list from its other end: the same index, read the other way."""
    return [_backwards(each) for each in order]


def _backwards(way: ColumnElement[Any]) -> ColumnElement[Any]:
    match way:
        case UnaryExpression(modifier=modifier, element=element) if modifier is asc_op:
            return element.desc()
        case UnaryExpression(modifier=modifier, element=element) if modifier is desc_op:
            return element.asc()
        case UnaryExpression(modifier=modifier, element=UnaryExpression(element=element)) if modifier is nulls_last_op:
            return element.asc().nulls_first()
    raise AssertionError(f"an order in words of this module: {way}")


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


def joined_for(
    expressions: Iterable[ColumnElement[Any]],
    listed: FromClause,
    *,
    owner_id: ColumnElement[int] | None,
    project_id: ColumnElement[int],
) -> FromClause:
    """``listed`` with its owners, projects and workspaces, of which each row has one, as far as ``expressions`` ask.

    owner_id  None where nothing may ask about owners
    """
    asked = asked_tables(expressions)
    if users in asked and owner_id is not None:
        listed = listed.join(users, users.c.id == owner_id)
    if projects in asked or workspaces in asked:
        listed = listed.join(projects, projects.c.id == project_id)
    if workspaces in asked:
        listed = listed.join(workspaces, workspaces.c.id == projects.c.workspace_id)
    return listed
