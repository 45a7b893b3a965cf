"""The rows of one page: which they are is found first, and only for them is read what a list shows of each.

Joined and sorted as a whole, a list would pay for the configuration of every row, to show forty.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, select
from sqlalchemy.ext.asyncio import AsyncConnection


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
