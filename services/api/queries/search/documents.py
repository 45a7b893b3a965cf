"""Values inside JSON documents of users, as expressions for the database that no content can make fail.

A cast that fails would fail the whole search, so every one is behind a test of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    DateTime,
    Numeric,
    TableValuedAlias,
    Text,
    and_,
    case,
    cast,
    column,
    func,
    literal,
    literal_column,
    null,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import JSONB

_WORDS: Final = ("NaN", "Infinity", "-Infinity")
_DAY: Final = (
    r"\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))"
    r"|(\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29"
)
_TIME: Final = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-](0\d|1[0-4]):[0-5]\d)"
MOMENT: Final = rf"^(?!0000)(\d{{4}}-(0[1-9]|1[0-2])|({_DAY})(T{_TIME})?)$"
"""A month, a day, or RFC 3339 (docs/reference/experiments.md 13.7), of days that exist."""
_COMPLETE: Final = "0000-01-01T00:00:00Z"


def at(document: ColumnElement[Any], path: Sequence[str]) -> ColumnElement[Any]:
    """The jsonb value at a path; NULL where there is none."""
    return type_coerce(document.op("#>")(literal(list(path), ARRAY(Text))), JSONB)


def text_in(value: ColumnElement[Any]) -> ColumnElement[Any]:
    """A jsonb value as text, strings without quotes; NULL for null."""
    # Not a parameter: the driver would send it as text, and the operator takes an array.
    return type_coerce(value.op("#>>")(literal_column("'{}'")), Text)


def number_in(value: ColumnElement[Any]) -> ColumnElement[Any]:
    """The number in a jsonb value as numeric, which holds any that JSON can write; NULL when it holds none.

    Searches ask it of every row, so that it looks into the document no more often than it has to.
    """
    text = text_in(value)
    of_text = case((text.in_(_WORDS), cast(text, Numeric)), else_=null())
    return case({"number": cast(value, Numeric), "string": of_text}, value=func.jsonb_typeof(value), else_=null())


def moment_in(value: ColumnElement[Any]) -> ColumnElement[Any]:
    """The moment in a jsonb string, a month or a day from its beginning in UTC; NULL when it holds none."""
    text = text_in(value)
    complete = text.op("||")(func.substr(_COMPLETE, func.length(text) + 1))
    return case((is_moment(value), cast(complete, DateTime(timezone=True))), else_=null())


def is_moment(value: ColumnElement[Any]) -> ColumnElement[bool]:
    return and_(func.jsonb_typeof(value) == "string", text_in(value).regexp_match(MOMENT))


def members(document: ColumnElement[Any], name: str) -> TableValuedAlias:
    """Rows of ``key`` and ``value`` for what an object holds, none for anything else."""
    empty = literal({}, JSONB)
    of_object = case((func.jsonb_typeof(document) == "object", document), else_=empty)
    return (
        func.jsonb_each(of_object)
        .table_valued(column("key", Text), column("value", JSONB), name=name, joins_implicitly=True)
        .render_derived()
    )
