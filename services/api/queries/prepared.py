"""Statements that are read often: built and compiled once, and given to the driver without a detour.

Building a statement anew and looking up its compiled form costs several times what the driver needs to send it.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from sqlalchemy import ARRAY, BindParameter, ColumnElement, Select, any_, bindparam, cast, select
from sqlalchemy.dialects.postgresql.asyncpg import PGCompiler_asyncpg, PGDialect_asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import DriverConnection, driver_connection

ESCAPE: Final = "/"
"""Stands before characters of a pattern that mean themselves (``escaped``)."""
_DIALECT: Final = PGDialect_asyncpg()  # type: ignore[no-untyped-call]


def given(name: str, column: ColumnElement[Any]) -> BindParameter[Any]:
    """A parameter of the type of ``column``."""
    return bindparam(name, None, type_=column.type)


def hidden(name: str, column: ColumnElement[Any]) -> ColumnElement[Any]:
    """The same for a statement that reads a partitioned table: if the value were known when it is planned, a plan that
    finds its partition while it runs would look dearer, and be made anew each time."""
    return select(given(name, column)).scalar_subquery()


def one_of_given(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """Whether ``column`` is in the list that a parameter is."""
    return column == any_(bindparam(name, None, type_=ARRAY(column.type)))


def one_of_hidden(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """The same for a statement with subqueries: how long the list is would tempt the database to plan it each time."""
    array = ARRAY(column.type)
    return column == any_(cast(select(bindparam(name, None, type_=array)).scalar_subquery(), array))


def escaped(text: str) -> str:
    """A text to look for with LIKE, in which no character stands for others."""
    for character in (ESCAPE, "%", "_"):
        text = text.replace(character, ESCAPE + character)
    return text


class _Constants(PGCompiler_asyncpg):
    """Writes values that are known where others have parameters."""

    def visit_bindparam(self, bindparam: Any, *args: Any, **options: Any) -> Any:
        options["literal_binds"] = options.get("literal_binds") or bindparam.value is not None
        return super().visit_bindparam(bindparam, *args, **options)  # type: ignore[no-untyped-call]


_WITH_CONSTANTS: Final = PGDialect_asyncpg()  # type: ignore[no-untyped-call]
_WITH_CONSTANTS.statement_compiler = _Constants


class PreparedQuery:
    """One statement whose parameters are constants or ``given`` by name."""

    def __init__(self, query: Select[Any], *, constants_in_text: bool = False) -> None:
        """constants_in_text  for a statement that reads by an index of a part of a table: in a plan that is kept, the
        database knows of parameters neither that they are of this part nor how many rows have them
        """
        dialect = _WITH_CONSTANTS if constants_in_text else _DIALECT
        compiled = query.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
        self._sql = str(compiled)
        self._names: list[str] = list(compiled.positiontup or ())
        self._constants = {name: value for name, value in compiled.params.items() if value is not None}
        self._make = _row_of(tuple(column.name for column in query.selected_columns))

    async def rows(self, connection: AsyncConnection | DriverConnection, **parameters: Any) -> list[Any]:
        """Named tuples with the columns of the query."""
        return [self._make(record) for record in await self.records(connection, **parameters)]

    async def records(
        self, connection: AsyncConnection | DriverConnection, **parameters: Any
    ) -> list[Mapping[Any, Any]]:
        """The same as mappings, as the driver makes them."""
        driver = await driver_connection(connection)
        given = {**self._constants, **parameters}
        found: list[Mapping[Any, Any]] = await driver.fetch(self._sql, *[given[name] for name in self._names])
        return found


@cache
def _row_of(names: tuple[str, ...]) -> Callable[[Any], Any]:
    """Makes a named tuple; one for all statements with these columns, since making its type takes longest."""
    row: Any = namedtuple("Row", names)  # type: ignore[misc]
    make: Callable[[Any], Any] = row._make
    return make
