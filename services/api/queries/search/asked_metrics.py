"""Which metrics a search filters or sorts by. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.api.queries.search.language.filters import Field, Group
from services.api.queries.search.language.metric_ids import parse_metric_id
from services.api.queries.search.language.sorting import SortKey


def asked_metrics(root: Group | Field | None, keys: Sequence[SortKey]) -> set[tuple[str, str]]:
    """Group and name of each; also of columns that only have the form of a metric, which does no harm."""
    columns = [*_columns(root), *(key.column for key in keys)]
    metrics = [metric for column in columns if (metric := parse_metric_id(column)) is not None]
    return {(metric.group, metric.metric) for metric in metrics}


def _columns(node: Group | Field | None) -> Iterator[str]:
    if isinstance(node, Field):
        yield node.column
    elif node is not None:
        for child in node.children:
            yield from _columns(child)
