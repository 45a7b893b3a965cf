"""The part of a list that a reply holds, by the two flavours of offset and limit that clients expect.

Clients repeat a request with ``offset = endIndex`` until ``endIndex >= total``, so a page in the middle that makes no
progress would keep them busy for ever; neither flavour gives one.
Source: docs/reference/platform.md 1.5, docs/reference/tasks-and-cli.md 1.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from libs.errors import InvalidRequest
from services.api.wire.base import Pagination

Item = TypeVar("Item")

DEFAULT_SQL_LIMIT: Final = 100
ALL: Final = -1
COUNT_ONLY: Final = -2


@dataclass(frozen=True, slots=True)
class SqlPage:
    """What to put behind a query: ``rows[start:start + limit]``; ``limit`` 0 asks for no rows at all."""

    start: int
    limit: int
    pagination: Pagination

    @property
    def rows_behind(self) -> int:
        """How many rows of the list come after the page."""
        return self.pagination.total - self.start - self.limit


def list_page(items: Sequence[Item], *, offset: int, limit: int) -> tuple[list[Item], Pagination]:
    """Flavour A: the page of a list that is already in memory.

    offset  a negative one counts back from the end
    limit   0 (or less) is everything
    Raises InvalidRequest when the page would start outside of ``0..len(items)``.
    """
    page = list_bounds(len(items), offset=offset, limit=limit)
    return list(items[page.start_index : page.end_index]), page


def list_bounds(total: int, *, offset: int, limit: int) -> Pagination:
    """Flavour A for a list that only the caller can slice: ``[start_index:end_index]`` of ``total`` items."""
    start = offset + total if offset < 0 else offset
    if not 0 <= start <= total:
        raise InvalidRequest("offset out of bounds")
    end = total if limit <= 0 else min(start + limit, total)
    return Pagination(offset=offset, limit=limit, start_index=start, end_index=end, total=total)


def sql_page(total: int, *, offset: int, limit: int) -> SqlPage:
    """Flavour B: the page of a query whose full count is ``total``.

    offset  a negative one counts back from the end; one beyond either end gives an empty page at the end
    limit   0 is the default of 100, -1 everything, -2 no rows but the right total (clients count with it)
    Raises InvalidRequest for other negative limits.
    """
    if limit < COUNT_ONLY:
        raise InvalidRequest("limit must be -2 (count only), -1 (all), 0 (default) or positive")
    start = offset + total if offset < 0 else offset
    if not 0 <= start <= total:
        start = total
    size = {0: DEFAULT_SQL_LIMIT, ALL: total, COUNT_ONLY: 0}.get(limit, limit)
    end = min(start + size, total)
    pagination = Pagination(offset=offset, limit=limit, start_index=start, end_index=end, total=total)
    return SqlPage(start=start, limit=end - start, pagination=pagination)
