"""Values in a project: ranges of metrics, texts in metadata (docs/reference/platform.md 8)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import msgspec
from sqlalchemy import Text, case, cast, column, func, select, true, values
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.tables.experiments import experiments
from libs.db.tables.trials import trials
from libs.natural_order.keys import natural_sort_key
from services.api.metrics.groups import group_of_summary
from services.api.queries.project_parts import Part, PartReader, ProjectParts
from services.api.queries.search.documents import members, number_in, text_in
from services.api.queries.search.language.metric_ids import AGGREGATES
from services.api.queries.search.run_values import metadata
from services.api.queries.summaries import marked_best, present_trials
from services.api.wire.base import double
from services.api.wire.search.project_columns import MetricsRange

Ranges = dict[str, tuple[float, float]]
"""The least and the greatest value, by the column."""
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")


async def metric_ranges(connection: AsyncConnection, project_id: int, parts: ProjectParts) -> list[MetricsRange]:
    """The least and the greatest finite value of each metric column, over the best trials of the experiments.

    The value of the searcher's metric, whichever that is, is a column too.
    """
    found = await parts.of_project(connection, project_id, _RANGES)
    return [
        MetricsRange(metrics_name=name, min=double(least), max=double(most))
        for name, (least, most) in sorted(found.items(), key=lambda item: natural_sort_key(item[0]))
    ]


def _add(ranges: Ranges, more: Ranges) -> None:
    for name, (least, most) in more.items():
        known = ranges.get(name)
        ranges[name] = (least, most) if known is None else (min(known[0], least), max(known[1], most))


async def _ranges(connection: AsyncConnection, part: Part) -> Ranges:
    best = select(experiments.c.best_trial_id).where(
        experiments.c.project_id == part.project_id,
        experiments.c.id >= part.first,
        experiments.c.id < part.end,
    )
    marked = await marked_best(connection, part.project_id, part.first, part.end)
    group = members(trials.c.summary_metrics, "of_group")
    metric = members(group.c.value, "of_metric")
    aggregate = values(column("name", Text), name="aggregate").data([(name,) for name in AGGREGATES])
    number = number_in(metric.c.value.op("->")(aggregate.c.name))
    query = (
        select(group.c.key, metric.c.key, aggregate.c.name, func.min(number), func.max(number))
        .select_from(trials.join(group, true()).join(metric, true()).join(aggregate, true()))
        .where(
            trials.c.id.in_(best),
            trials.c.id.not_in(marked),
            metric.c.value["type"].astext == "number",
            number.is_not(None),
            cast(number, Text).not_in(_NOT_FINITE),
        )
        .group_by(group.c.key, metric.c.key, aggregate.c.name)
    )
    rows = (await connection.execute(query)).all()
    found = {
        f"{group_of_summary(key)}.{name}.{kind}": (float(least), float(most)) for key, name, kind, least, most in rows
    }
    for trial_id in marked:  # one at a time: each may have a hundred thousand metrics
        for trial in (await present_trials(connection, [trial_id])).values():
            _widen(found, msgspec.json.decode(trial.summary))
    value = trials.c.searcher_metric_value
    finite = cast(value, Text).not_in(_NOT_FINITE)
    ends = select(func.min(value), func.max(value)).where(trials.c.id.in_(best), value.is_not(None), finite)
    least, most = (await connection.execute(ends)).one()
    if least is not None:
        found["searcherMetricsVal"] = (float(least), float(most))
    return found


_RANGES: Final = PartReader("ranges of metrics", _ranges, dict, _add, of_reports=True)


def _widen(ranges: dict[str, tuple[float, float]], summary: Any) -> None:
    """Let ranges have the values of one more trial, which are finite or spelled as words."""
    for key, metrics in summary.items():
        for name, metric in metrics.items() if isinstance(metrics, dict) else ():
            if not isinstance(metric, dict) or metric.get("type") != "number":
                continue
            for kind in AGGREGATES:
                number = metric.get(kind)
                if isinstance(number, bool) or not isinstance(number, int | float):
                    continue
                value = float(Decimal(number))  # of an integer of any length
                column_name = f"{group_of_summary(key)}.{name}.{kind}"
                least, most = ranges.get(column_name, (value, value))
                ranges[column_name] = (min(least, value), max(most, value))


async def metadata_values(connection: AsyncConnection, project_id: int, key: str, parts: ProjectParts) -> list[str]:
    """The texts that runs have under a dotted key of their metadata, also as elements of lists: in natural order, each
    once."""

    async def texts(connection: AsyncConnection, part: Part) -> set[str]:
        return await _texts(connection, part, key)

    reading = PartReader[set[str]](f"metadata under {key}", texts, set, set.update)
    found = await parts.of_project(connection, project_id, reading)
    return sorted(found, key=natural_sort_key)


async def _texts(connection: AsyncConnection, part: Part, key: str) -> set[str]:
    value = metadata(key)
    some = case((func.jsonb_typeof(value) == "array", value), else_=func.jsonb_build_array(value))
    each = func.jsonb_array_elements(some).table_valued(column("element", value.type), name="each").render_derived()
    is_text = func.jsonb_typeof(each.c.element) == "string"
    query = (
        select(text_in(each.c.element).label("text"))
        .select_from(trials.join(each, true()))
        .where(
            trials.c.project_id == part.project_id,
            trials.c.experiment_id >= part.first,
            trials.c.experiment_id < part.end,
            is_text,
        )
        .distinct()
    )
    return set(await connection.scalars(query))
