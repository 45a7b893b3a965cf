"""The statements that a read of the api is made of, recorded once, and done again with nothing around them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import asyncpg
from sqlalchemy import Engine, event

from libs.db.connecting.settings import DatabaseSettings
from libs.db.engine import Database, connect_database, driver_connection

Read = Callable[[Database], Awaitable[object]]


@dataclass(frozen=True)
class Statement:
    sql: str
    parameters: tuple[Any, ...]


async def connect(url: str) -> asyncpg.Connection:
    """A connection with the settings of those of the api."""
    return await asyncpg.connect(url, server_settings={"jit": "off"})


async def statements_of(url: str, read: Read) -> list[Statement]:
    """What ``read`` asks of the database."""
    recorded: list[Statement] = []

    def record(_: Any, __: Any, sql: str, parameters: tuple[Any, ...], *___: Any) -> None:
        recorded.append(Statement(sql, parameters))

    def record_prepared(query: asyncpg.LoggedQuery) -> None:
        recorded.append(Statement(query.query, tuple(query.args)))

    async with connect_database(DatabaseSettings(url=url, pool_size=1)) as db:
        await read(db)  # the driver asks about types once
        async with db.read() as connection:
            (await driver_connection(connection)).add_query_logger(record_prepared)
        event.listen(Engine, "before_cursor_execute", record)
        try:
            await read(db)
        finally:
            event.remove(Engine, "before_cursor_execute", record)
    return recorded


async def prepared(connection: asyncpg.Connection, statements: list[Statement]) -> Callable[[], Awaitable[None]]:
    """A function that does the statements one after the other and takes their rows."""
    ready = [(await connection.prepare(each.sql), each.parameters) for each in statements]

    async def run() -> None:
        for statement, parameters in ready:
            await statement.fetch(*parameters)

    return run
