"""Operators of filters as conditions, one table per kind of column.

NULL fulfils no comparison, so that a comparison and its negation share out the rows that have a value.
Source: docs/reference/platform.md 9.1.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum, auto
from typing import Any, Final

from sqlalchemy import BigInteger, Boolean, ColumnElement, DateTime, Numeric, Text, cast, func, literal, or_
from sqlalchemy.dialects.postgresql import DOUBLE_PRECISION

from libs.errors import InvalidRequest
from services.api.queries.search.language.filters import NEGATIONS, Field, Operator
from services.api.queries.search.language.values import boolean_of, moment_of, number_of, text_of
from services.api.wire.base import INT64_MAX, INT64_MIN

Compare = Callable[[ColumnElement[Any], ColumnElement[Any]], ColumnElement[bool]]


class ValueKind(Enum):
    """What an expression is for the database."""

    INTEGER = auto()
    DOUBLE = auto()
    NUMERIC = auto()
    TEXT = auto()
    MOMENT = auto()
    BOOLEAN = auto()


COMPARISONS: Final[Mapping[Operator, Compare]] = {
    Operator.EQUAL: operator.eq,
    Operator.NOT_EQUAL: operator.ne,
    Operator.LESS: operator.lt,
    Operator.LESS_OR_EQUAL: operator.le,
    Operator.GREATER: operator.gt,
    Operator.GREATER_OR_EQUAL: operator.ge,
}
_EQUALITY: Final = frozenset({Operator.EQUAL, Operator.NOT_EQUAL})


def condition(
    expression: ColumnElement[Any], kind: ValueKind, field: Field, *, any_case: bool = True
) -> ColumnElement[bool]:
    """What ``field`` asks of ``expression``.

    any_case  whether ``contains`` takes a letter for its other case too
    Raises InvalidRequest when the value or the operator does not fit the kind.
    """
    if field.operator in (Operator.IS_EMPTY, Operator.NOT_EMPTY):
        return negated(field.operator, _is_empty(expression, kind))
    if field.operator in (Operator.CONTAINS, Operator.NOT_CONTAINS):
        return negated(field.operator, _contains(as_text(expression, kind, field), text_of(field), any_case=any_case))
    if kind is ValueKind.BOOLEAN and field.operator not in _EQUALITY:
        raise _does_not_fit(field)
    return COMPARISONS[field.operator](expression, bound(kind, field))


def negated(wanted: Operator, positive: ColumnElement[bool]) -> ColumnElement[bool]:
    """The condition itself, or its opposite for an operator that is one."""
    return ~positive if wanted in NEGATIONS else positive


def bound(kind: ValueKind, field: Field) -> ColumnElement[Any]:
    """The value of the field as a parameter of the statement. Raises InvalidRequest."""
    match kind:
        case ValueKind.INTEGER | ValueKind.NUMERIC:
            number = number_of(field)
            if isinstance(number, int) and INT64_MIN <= number <= INT64_MAX:
                return literal(number, BigInteger)
            return literal(Decimal(str(number)) if isinstance(number, float) else Decimal(number), Numeric)
        case ValueKind.DOUBLE:
            return literal(float(number_of(field)), DOUBLE_PRECISION)
        case ValueKind.MOMENT:
            return literal(moment_of(field), DateTime(timezone=True))
        case ValueKind.BOOLEAN:
            return literal(boolean_of(field), Boolean)
        case ValueKind.TEXT:
            return literal(text_of(field), Text)


def as_text(expression: ColumnElement[Any], kind: ValueKind, field: Field) -> ColumnElement[Any]:
    """What ``contains`` looks into. Raises InvalidRequest for truth values."""
    match kind:
        case ValueKind.TEXT:
            return expression
        case ValueKind.MOMENT:
            return func.to_char(func.timezone("UTC", expression), 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        case ValueKind.BOOLEAN:
            raise _does_not_fit(field)
        case _:
            return cast(expression, Text)


def _contains(text: ColumnElement[Any], part: str, *, any_case: bool) -> ColumnElement[bool]:
    return text.icontains(part, autoescape=True) if any_case else text.contains(part, autoescape=True)


def _is_empty(expression: ColumnElement[Any], kind: ValueKind) -> ColumnElement[bool]:
    nothing = expression.is_(None)
    return or_(nothing, expression.in_(("", "[]"))) if kind is ValueKind.TEXT else nothing


def _does_not_fit(field: Field) -> InvalidRequest:
    return InvalidRequest(f"filter: column '{field.column}': operator '{field.operator}' is not for true or false")
