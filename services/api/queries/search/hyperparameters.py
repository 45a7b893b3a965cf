"""Conditions on hyperparameters: on the space that an experiment searches, and on the values that a run has.

Source: docs/reference/experiments.md 13.5, docs/reference/platform.md 9.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, false, func, literal, or_
from sqlalchemy.dialects.postgresql import JSONB

from libs.db.tables.experiments import experiments
from libs.errors import InvalidRequest
from services.api.queries.search.documents import at, number_in, text_in
from services.api.queries.search.language.filters import EMPTINESS, ColumnType, Field, Operator
from services.api.queries.search.language.values import number_of, text_of
from services.api.queries.search.operators import COMPARISONS, ValueKind, bound, condition, negated

PREFIX: Final = "hp."
_RANGES: Final = ("int", "double", "log")
_TEXTS: Final = (ColumnType.TEXT, ColumnType.DATE)


def definition(name: str) -> ColumnElement[Any]:
    """The hyperparameter of that dotted name in the configuration of an experiment."""
    return at(experiments.c.config["hyperparameters"], name.split("."))


def definition_condition(name: str, field: Field) -> ColumnElement[bool]:
    """What ``field`` asks of a hyperparameter: of its value, of its choices, or of the ends of its range."""
    space = definition(name)
    kind = space["type"].astext
    if field.operator in EMPTINESS:
        no_choice = and_(kind == "categorical", func.coalesce(space["vals"], _json([])) == _json([]))
        no_value = and_(kind == "const", text_in(space["val"]).is_(None))
        return negated(field.operator, or_(kind.is_(None), no_choice, no_value))
    as_texts = field.type in _TEXTS or (field.type is ColumnType.UNSPECIFIED and not _is_number(field))
    return or_(
        and_(kind == "const", _constant(space["val"], field, as_texts=as_texts)),
        and_(kind == "categorical", _choice(space["vals"], field, as_texts=as_texts)),
        and_(kind.in_(_RANGES), _range(space, field, as_texts=as_texts)),
    )


def _constant(value: ColumnElement[Any], field: Field, *, as_texts: bool) -> ColumnElement[bool]:
    if as_texts:
        return condition(text_in(value), ValueKind.TEXT, field, any_case=False)
    if field.operator in COMPARISONS:
        return condition(number_in(value), ValueKind.NUMERIC, field)
    return false()


def _choice(values: ColumnElement[Any], field: Field, *, as_texts: bool) -> ColumnElement[bool]:
    if field.operator not in (Operator.CONTAINS, Operator.NOT_CONTAINS):
        return false()
    return negated(field.operator, or_(*(values.contains(_json([member])) for member in _members(field, as_texts))))


def _members(field: Field, as_texts: bool) -> list[str | int | float | bool]:
    """What a choice may contain; for a column without a type, as choices are listed, the value as it was given too."""
    members = [text_of(field) if as_texts else number_of(field)]
    given = field.value
    if field.type is ColumnType.UNSPECIFIED and isinstance(given, str | bool):
        members.append(given)
    return members


def _is_number(field: Field) -> bool:
    try:
        number_of(field)
    except InvalidRequest:
        return False
    return True


def _range(space: ColumnElement[Any], field: Field, *, as_texts: bool) -> ColumnElement[bool]:
    if as_texts:
        return false()
    least, most, value = number_in(space["minval"]), number_in(space["maxval"]), bound(ValueKind.NUMERIC, field)
    if field.operator is Operator.CONTAINS:
        return or_(least <= value, most >= value)
    if field.operator is Operator.NOT_CONTAINS:
        return or_(least >= value, most <= value)
    compare = COMPARISONS[field.operator]
    return or_(compare(least, value), compare(most, value))


def _json(value: Sequence[str | int | float | bool]) -> ColumnElement[Any]:
    return literal(value, JSONB)
