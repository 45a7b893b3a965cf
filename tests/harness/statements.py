"""Counts the round trips to the database that code in this process makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
from sqlalchemy import Engine, event
from sqlalchemy.pool import Pool


@contextmanager
def counted_statements() -> Iterator[list[str]]:
    """The statements of every connection that is made in the block, as they are sent; a batch is one."""
    sent: list[str] = []

    def listen(connection: Any, _: Any) -> None:
        connection.driver_connection.add_query_logger(note_of_driver)

    def note_of_driver(query: asyncpg.LoggedQuery) -> None:
        sent.append(query.query)

    def note(_: Any, __: Any, sql: str, *___: Any) -> None:
        sent.append(sql)

    event.listen(Pool, "connect", listen)
    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(Pool, "connect", listen)
        event.remove(Engine, "before_cursor_execute", note)
