"""The rows of one page: which they are is found first, and only for them is read what a list shows of each.

Joined and sorted as a whole, a list would pay for the configuration of every row, to show forty.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from services.api.queries.ordering import backwards
from services.api.queries.pagination import SqlPage

NEARER_TO_THE_END: Final = 500
"""Rows that a page has to be nearer to the end than to the beginning to be read from there."""


async def rows_of_list(
    connection: AsyncConnection,
    shown: Select[Any],
    keys: Select[Any],
    order: Sequence[ColumnElement[Any]],
    page: SqlPage,
    *,
    known_total: Select[Any] | None,
) -> list[Row[Any]]:
    """Rows of ``shown`` on a page of a list, in its order.

    keys         a column of ``shown``, of all rows of the list, each once
    order        decides between any two of them
    known_total  how many there are, if the database knows without counting them: then the last page costs no more than
                 the first
    """
    (key,) = keys.selected_columns
    if known_total is not None and is_nearer_to_the_end(page):
        wanted = keys.order_by(*backwards(order)).offset(page.rows_behind).limit(page.limit)
        found = (await connection.execute(with_total(numbered(shown, key, wanted), known_total))).all()
        if is_as_counted(found, page):
            return sorted(found, key=attrgetter("place"), reverse=True)
    wanted = keys.order_by(*order).offset(page.start).limit(page.limit)
    return await rows_of_page(connection, shown, key, wanted)


def is_nearer_to_the_end(page: SqlPage) -> bool:
    return page.start > page.rows_behind + NEARER_TO_THE_END


def with_total(query: Select[Any], total: Select[Any]) -> Select[Any]:
    """``query`` with ``total_now``, of its own snapshot."""
    return query.add_columns(total.correlate(None).scalar_subquery().label("total_now"))


def is_as_counted(found: Sequence[Any], page: SqlPage) -> bool:
    """Whether no row has come or gone since they were counted: from the end, the page would be another one."""
    return len(found) == page.limit and found[0].total_now == page.pagination.total


async def rows_of_page(
    connection: AsyncConnection, shown: Select[Any], key: ColumnElement[Any], wanted: Select[Any]
) -> list[Row[Any]]:
    """Rows of ``shown`` whose ``key`` is in ``wanted``, in its order; both see one snapshot.

    wanted  keys, each once: ordered, with offset and limit
    """
    return sorted(await connection.execute(numbered(shown, key, wanted)), key=attrgetter("place"))


def numbered(shown: Select[Any], key: ColumnElement[Any], wanted: Select[Any]) -> Select[Any]:
    """The same as a statement: rows in any order, each with its ``place`` among those of ``wanted``."""
    keys = wanted.subquery("wanted")
    page = select(keys.c[0].label("key"), func.row_number().over().label("place")).cte("page")
    return shown.add_columns(page.c.place).where(page.c.key == key)
