"""A page of the rows of a filter that an index answers.

There are two ways to it. Where many rows match, some of the first ones in the order of the list do: these are looked at
one after the other until there are enough. Otherwise all that match are found by the index, and sorted. The first way
is given up after as many rows as match, so that neither costs more than these, wherever in the order they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, Select, select, union_all
from sqlalchemy.ext.asyncio import AsyncConnection

from services.api.queries.page_rows import rows_of_page
from services.api.queries.pagination import SqlPage

MANY: Final = 1000
"""Rows that match, of which some are looked for among the first ones of the list."""
MOST_LOOKED_AT: Final = 20_000


@dataclass(frozen=True, slots=True)
class Matching:
    """A condition, and what an index says of it.

    keys   ids of the rows that fulfil it: of all together, each once
    total  how many of them are in the list
    """

    holds: ColumnElement[bool]
    keys: tuple[Select[Any], ...]
    total: Select[Any]


async def matching_rows(
    connection: AsyncConnection,
    shown: Select[Any],
    listed: Select[Any],
    matching: Matching,
    *,
    order: Sequence[ColumnElement[Any]],
    page: SqlPage,
    is_in_index: bool,
) -> list[Row[Any]]:
    """Rows of ``shown`` on a page of those in ``listed`` that match, in order.

    listed       a column of ``shown``, of all rows of the list, each once
    order        decides between any two of them
    is_in_index  whether the first rows in this order are found without a look at the others
    """
    (key,) = listed.selected_columns
    total = page.pagination.total
    if is_in_index and total >= MANY and page.start + page.limit <= MANY:
        first = listed.add_columns(matching.holds.label("holds")).order_by(*order).limit(min(total, MOST_LOOKED_AT))
        looked_at = first.subquery("looked_at")
        wanted = select(looked_at.c[0]).where(looked_at.c.holds).offset(page.start).limit(page.limit)
        rows = await rows_of_page(connection, shown, key, wanted)
        if len(rows) == page.limit:
            return rows
    of_all = union_all(*matching.keys) if len(matching.keys) > 1 else matching.keys[0]
    wanted = listed.where(key.in_(of_all)).order_by(*order).offset(page.start).limit(page.limit)
    return await rows_of_page(connection, shown, key, wanted)
