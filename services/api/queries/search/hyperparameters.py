"""Conditions on hyperparameters: on the space that an experiment searches, and on the values that a run has.

Source: docs/reference/experiments.md 13.5, docs/reference/platform.md 9.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, false, func, literal, or_
from sqlalchemy.dialects.postgresql import JSONB

from libs.db.tables.experiments import experiments
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
    as_texts = field.type in _TEXTS
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
    member = text_of(field) if as_texts else number_of(field)
    return negated(field.operator, values.contains(_json([member])))


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


def _json(value: Sequence[str | int | float]) -> ColumnElement[Any]:
    return literal(value, JSONB)
