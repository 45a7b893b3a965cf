"""The rows of docs/reference/platform.md 1.5."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.errors import InvalidRequest
from services.api.queries.pagination import list_page, sql_page
from services.api.wire.base import Pagination

LIST_PAGES = [  # offset, limit, start, end of 7 items
    (0, 0, 0, 7),
    (4, 2, 4, 6),
    (-2, 0, 5, 7),
    (-7, 3, 0, 3),
    (6, 5, 6, 7),
    (7, 5, 7, 7),
    (3, -1, 3, 7),
]


@pytest.mark.parametrize(("offset", "limit", "start", "end"), LIST_PAGES)
def test_list_pages(offset: int, limit: int, start: int, end: int) -> None:
    items = list("abcdefg")
    page, pagination = list_page(items, offset=offset, limit=limit)
    assert page == items[start:end]
    assert pagination == Pagination(offset=offset, limit=limit, start_index=start, end_index=end, total=7)


@pytest.mark.parametrize("offset", [8, -8])
def test_list_pages_outside_of_the_list_are_refused(offset: int) -> None:
    with pytest.raises(InvalidRequest, match=r"^offset out of bounds$"):
        list_page(list("abcdefg"), offset=offset, limit=0)


SQL_PAGES = [  # total, offset, limit, start, end
    (250, 0, 0, 0, 100),
    (250, 0, -1, 0, 250),
    (250, 0, -2, 0, 0),
    (250, 200, 0, 200, 250),
    (250, -10, 0, 240, 250),
    (250, 251, 5, 250, 250),
    (250, -251, 5, 250, 250),
    (250, 250, 5, 250, 250),
    (0, 0, 0, 0, 0),
]


@pytest.mark.parametrize(("total", "offset", "limit", "start", "end"), SQL_PAGES)
def test_sql_pages(total: int, offset: int, limit: int, start: int, end: int) -> None:
    page = sql_page(total, offset=offset, limit=limit)
    assert (page.start, page.limit) == (start, end - start)
    assert page.pagination == Pagination(offset=offset, limit=limit, start_index=start, end_index=end, total=total)


def test_other_negative_sql_limits_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="limit must be"):
        sql_page(5, offset=0, limit=-3)


@given(total=st.integers(0, 500), limit=st.integers(-1, 50), flavour=st.sampled_from(["list", "sql"]))
def test_a_client_that_follows_end_index_sees_everything_once(total: int, limit: int, flavour: str) -> None:
    items = list(range(total))
    seen: list[int] = []
    offset = 0
    for _ in range(total + 1):
        if flavour == "list":
            rows, pagination = list_page(items, offset=offset, limit=limit)
        else:
            page = sql_page(total, offset=offset, limit=limit)
            rows, pagination = items[page.start : page.start + page.limit], page.pagination
        seen += rows
        offset = pagination.end_index
        if pagination.end_index >= pagination.total:
            break
    assert seen == items
