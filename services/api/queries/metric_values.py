"""Numbers inside stored metric reports, as expressions for the database.

Reports are whatever training code sends: a metric may be a number, one of the words that stand for what is not finite,
or anything else, which is no number. Source: docs/reference/experiments.md 9.1.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, FromClause, and_, case, cast, func, literal_column, null
from sqlalchemy.dialects.postgresql import DOUBLE_PRECISION

_WORDS = ("NaN", "Infinity", "-Infinity")


def number_in(value: ColumnElement[Any]) -> ColumnElement[Any]:
    """The number in a jsonb value, NULL when it holds none. NaN sorts after all numbers."""
    # Not a parameter: the driver would send it as text, and the operator takes an array.
    kind, text = func.jsonb_typeof(value), value.op("#>>")(literal_column("'{}'"))
    return case(
        (kind == "number", cast(text, DOUBLE_PRECISION)),
        (and_(kind == "string", text.in_(_WORDS)), cast(text, DOUBLE_PRECISION)),
        else_=null(),
    )


def searcher_metric_of(reports: FromClause, experiments: FromClause) -> ColumnElement[Any]:
    """The jsonb value of the searcher metric in a validation report; NULL when the report lacks it."""
    name = experiments.c.config["searcher"]["metric"].astext
    return reports.c.metrics["validation_metrics"].op("->")(name)


def sign_of_searcher_metric(experiments: FromClause) -> ColumnElement[Any]:
    """1 or -1: times this, a smaller searcher metric is better. NaN stays NaN, which is worse than all numbers."""
    return case((experiments.c.config["searcher"]["smaller_is_better"].astext == "false", -1), else_=1)


def report_at_step(reports: FromClause, checkpoints: FromClause, group: str) -> ColumnElement[bool]:
    """Joins a checkpoint with the report of a group that its trial made at the same step and that still counts."""
    return and_(
        reports.c.trial_id == checkpoints.c.trial_id,
        reports.c.total_batches == checkpoints.c.steps_completed,
        reports.c.metric_group == group,
        ~reports.c.archived,
        reports.c.kind != "PROFILING",  # as the index has it
    )
