"""Filters and sort orders of searches, compiled to conditions and expressions with bound parameters.

Source: docs/reference/platform.md 9, docs/reference/experiments.md 13.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, or_, true
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from libs.errors import InvalidRequest
from services.api.metrics.groups import summary_key
from services.api.queries.experiments.experiments import best_trials
from services.api.queries.ordering import ascending, descending
from services.api.queries.search import addresses, hyperparameters, run_values
from services.api.queries.search.asked_metrics import asked_metrics
from services.api.queries.search.documents import at, number_in, text_in
from services.api.queries.search.fixed_columns import EXPERIMENT_COLUMNS, RUN_COLUMNS, FixedColumn
from services.api.queries.search.language.filters import (
    MOST_CHARACTERS_OF_A_NAME,
    ColumnType,
    Field,
    Group,
    Location,
    Operator,
)
from services.api.queries.search.language.metric_ids import AGGREGATES, MetricId, parse_metric_id
from services.api.queries.search.language.sorting import SortKey
from services.api.queries.search.language.values import text_of
from services.api.queries.search.operators import ValueKind, condition
from services.api.queries.summaries import present_series
from services.api.queries.trigrams import having_trigrams

INDEXED_ORDERS: Final = frozenset({"id", "startTime"})
"""Columns by which a project is sorted without a look at rows behind the page."""
METRICS: Final = frozenset({Location.TRAINING, Location.VALIDATIONS, Location.CUSTOM_METRIC})


@dataclass(frozen=True, slots=True)
class SearchTable:
    """What is searched: experiments, each with its best trial, or runs, each with its experiment.

    fixed              locations of the fixed columns; runs may be asked for those of a filter without a location
    of_runs            whether rows have hyperparameters and metadata of one run
    """

    name: str
    key: ColumnElement[Any]
    columns: Mapping[str, FixedColumn]
    summary: ColumnElement[Any]
    fixed: frozenset[Location]
    of_runs: bool


EXPERIMENTS: Final = SearchTable(
    name="experiments",
    key=experiments.c.id,
    columns=EXPERIMENT_COLUMNS,
    summary=best_trials.c.summary_metrics,
    fixed=frozenset({Location.EXPERIMENT}),
    of_runs=False,
)
RUNS: Final = SearchTable(
    name="runs",
    key=trials.c.id,
    columns=RUN_COLUMNS,
    summary=trials.c.summary_metrics,
    fixed=frozenset({Location.EXPERIMENT, Location.RUN}),
    of_runs=True,
)


async def as_of_now(
    connection: AsyncConnection,
    table: SearchTable,
    root: Group | Field | None,
    keys: Sequence[SortKey],
    *,
    project_id: int,
) -> SearchTable:
    """A table whose metrics are as of now where a filter or an order asks about them.

    project_id  where rows are looked for; 0 is every project
    """
    present = await present_series(connection, asked_metrics(root, keys), project_id=project_id or None)
    return replace(table, summary=present.of(table.summary)) if present.documents else table


def where(table: SearchTable, node: Group | Field) -> ColumnElement[bool]:
    """The condition of a filter. Raises InvalidRequest, which names the column."""
    if isinstance(node, Field):
        return _field(table, node)
    joined = and_ if node.conjunction == "and" else or_
    return joined(*(where(table, child) for child in node.children)) if node.children else true()


def order(table: SearchTable, keys: Sequence[SortKey]) -> list[ColumnElement[Any]]:
    """What to order by; ids, ascending, decide between equals. Raises InvalidRequest."""
    wanted = []
    for key in keys:
        for expression in _sorted_by(table, key.column):
            wanted.append(descending(expression) if key.descending else ascending(expression))
            if expression is table.key:
                return wanted  # nothing is left to decide
    return [*wanted, table.key.asc()]


def has_indexed_order(keys: Sequence[SortKey]) -> bool:
    """Whether the first rows of a project, in this order, are found without a look at the others."""
    return not keys or (len(keys) == 1 and keys[0].column in INDEXED_ORDERS)


def _field(table: SearchTable, field: Field) -> ColumnElement[bool]:
    if field.says_nothing:
        return true()
    if field.location in table.fixed:
        return _fixed(table, field)
    if field.location in METRICS:
        return _metric(table, field)
    match field.location:
        case Location.HYPERPARAMETERS:
            return hyperparameters.definition_condition(_hyperparameter(field), field)
        case Location.RUN_HYPERPARAMETERS if table.of_runs:
            return run_values.hyperparameter_condition(_hyperparameter(field), field)
        case Location.RUN_METADATA if table.of_runs and field.column.startswith(run_values.METADATA_PREFIX):
            return run_values.metadata_condition(field.column.removeprefix(run_values.METADATA_PREFIX), field)
    raise _unknown(table, field)


def _hyperparameter(field: Field) -> str:
    """The location says what the column is, so clients may leave the prefix out."""
    return field.column.removeprefix(hyperparameters.PREFIX)


def _fixed(table: SearchTable, field: Field) -> ColumnElement[bool]:
    column = table.columns.get(field.column)
    if column is None:
        raise _unknown(table, field)
    if table.of_runs and field.column == addresses.COLUMN and field.operator in addresses.OPERATORS:
        return addresses.condition(field)
    found = condition(column.filtered, column.kind, field)
    if column.trigrams is not None and field.operator is Operator.CONTAINS:
        return and_(found, *having_trigrams(column.trigrams, text_of(field)))
    return found


def _metric(table: SearchTable, field: Field) -> ColumnElement[bool]:
    metric = parse_metric_id(field.column)
    if metric is None:
        expected = f"<group>.<metric>.<{'|'.join(AGGREGATES)}>"
        raise InvalidRequest(f"filter: column '{field.column}': expected {expected} at LOCATION_TYPE_{field.location}")
    value = _metric_value(table, metric)
    if field.type is ColumnType.NUMBER:
        return condition(number_in(value), ValueKind.NUMERIC, field, any_case=False)
    return condition(text_in(value), ValueKind.TEXT, field, any_case=False)


def _sorted_by(table: SearchTable, name: str) -> list[ColumnElement[Any]]:
    column = table.columns.get(name)
    if column is not None:
        return [*column.sorted]
    if len(name) <= MOST_CHARACTERS_OF_A_NAME:
        if (hyperparameter := name.removeprefix(hyperparameters.PREFIX)) != name:
            value = run_values.hyperparameter if table.of_runs else hyperparameters.definition
            return [value(hyperparameter)]
        if table.of_runs and (key := name.removeprefix(run_values.METADATA_PREFIX)) != name:
            return [run_values.metadata(key)]
        if (metric := parse_metric_id(name)) is not None:
            found = _metric_value(table, metric)
            return [number_in(found), text_in(found)]
    raise InvalidRequest(f"invalid sort col: {name[:200]}")


def _metric_value(table: SearchTable, metric: MetricId) -> ColumnElement[Any]:
    return at(table.summary, (summary_key(metric.group), metric.metric, metric.aggregate))


def _unknown(table: SearchTable, field: Field) -> InvalidRequest:
    return InvalidRequest(
        f"filter: column '{field.column}': {table.name} have no such column at LOCATION_TYPE_{field.location}"
    )
