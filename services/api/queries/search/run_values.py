"""Conditions on what a run has of its own: concrete hyperparameters, and the metadata that its code attached.

Negative operators are for runs that have the key. A list of metadata is what its elements are: it fulfils a condition
when one of them does. Source: docs/reference/platform.md 9.1, docs/reference/experiments.md 13.5 and 13.7.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, case, exists, func, literal, null, select, type_coerce
from sqlalchemy.dialects.postgresql import JSONB

from libs.db.tables.trials import trials
from services.api.queries.search.documents import at, moment_in, number_in, text_in
from services.api.queries.search.language.filters import NEGATIONS, ColumnType, Field, Operator
from services.api.queries.search.operators import ValueKind, condition

METADATA_PREFIX: Final = "metadata."


def hyperparameter(name: str) -> ColumnElement[Any]:
    return at(trials.c.hparams, name.split("."))


def metadata(name: str) -> ColumnElement[Any]:
    return at(trials.c.metadata, name.split("."))


def hyperparameter_condition(name: str, field: Field) -> ColumnElement[bool]:
    if field.type is not ColumnType.TEXT and field.operator not in {*NEGATIONS, Operator.IS_EMPTY}:
        # Nothing but a leaf has such a value.
        return _slot(hyperparameter(name), field)
    value = _leaf(hyperparameter(name))
    return _of_those_that_have_it(value, field, lambda positive: _slot(value, positive))


def metadata_condition(name: str, field: Field) -> ColumnElement[bool]:
    value = _leaf(metadata(name))

    def some_element(positive: Field) -> ColumnElement[bool]:
        values = case((func.jsonb_typeof(value) == "array", value), else_=func.jsonb_build_array(value))
        each = func.jsonb_array_elements(values).table_valued("element").render_derived()
        return exists(select(literal(1)).select_from(each).where(_slot(type_coerce(each.c.element, JSONB), positive)))

    return _of_those_that_have_it(value, field, some_element)


def _leaf(value: ColumnElement[Any]) -> ColumnElement[Any]:
    """The value unless others lie below it: a key is one that leads to something, or to an empty object."""
    is_inner = and_(func.jsonb_typeof(value) == "object", value != literal({}, JSONB))
    return type_coerce(case((is_inner, null()), else_=value), JSONB)


def _of_those_that_have_it(value: ColumnElement[Any], field: Field, holds: Any) -> ColumnElement[bool]:
    if field.operator is Operator.IS_EMPTY:
        return value.is_(None)
    if field.operator is Operator.NOT_EMPTY:
        return value.is_not(None)
    if field.operator not in NEGATIONS:
        return and_(value.is_not(None), holds(field))
    opposite = holds(replace(field, operator=NEGATIONS[field.operator]))
    return and_(value.is_not(None), ~func.coalesce(opposite, literal(value=False)))


def _slot(value: ColumnElement[Any], field: Field) -> ColumnElement[bool]:
    """A condition on one value, if it is of the type that the field is for."""
    match field.type:
        case ColumnType.NUMBER:
            # A number has no parts: what contains 7 is 7.
            whole = replace(field, operator=Operator.EQUAL) if field.operator is Operator.CONTAINS else field
            return condition(number_in(value), ValueKind.NUMERIC, whole, any_case=False)
        case ColumnType.DATE:
            return condition(moment_in(value), ValueKind.MOMENT, field, any_case=False)
        case ColumnType.TEXT:
            is_text = func.jsonb_typeof(value).in_(("string", "array", "object", "null"))
            text = func.coalesce(text_in(value), "null")
            return and_(is_text, condition(text, ValueKind.TEXT, field, any_case=False))
        case _:
            truth = case((func.jsonb_typeof(value) == "boolean", text_in(value) == "true"), else_=null())
            return condition(truth, ValueKind.BOOLEAN, field)
