"""The best validations of an experiment in the order of time, each better than the one before
(docs/reference/experiments.md 9.4)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.config.stored import part, prefers_small, text_in
from libs.db.tables.metrics import metrics
from libs.db.tables.trials import trials
from libs.searchers.reports import read_number
from services.api.metrics.validations import is_better


class Point(Struct, frozen=True):
    trial_id: int
    end_time: datetime
    value: float


async def validation_history(connection: AsyncConnection, experiment_id: int, config: dict[str, Any]) -> list[Point]:
    """Validations that were better than all before them, in the order of their times."""
    metric = text_in(part(config, "searcher"), "metric")
    rows = await connection.execute(
        select(
            metrics.c.trial_id,
            metrics.c.end_time,
            metrics.c.metrics["validation_metrics"][metric].label("value"),
        )
        .join(trials, trials.c.id == metrics.c.trial_id)
        .where(
            trials.c.experiment_id == experiment_id,
            metrics.c.metric_group == "validation",
            ~metrics.c.archived,
            metrics.c.kind != "PROFILING",  # as the index has it
        )
        .order_by(metrics.c.end_time, metrics.c.id)
    )
    values = ((row.trial_id, row.end_time, read_number(row.value)) for row in rows)
    points = [Point(trial_id, end_time, value) for trial_id, end_time, value in values if value is not None]
    return improvements(points, smaller_is_better=prefers_small(config))


def improvements(points: Iterable[Point], *, smaller_is_better: bool) -> list[Point]:
    """Those that are better than all before them."""
    best: float | None = None
    better: list[Point] = []
    for point in points:
        signed = point.value if smaller_is_better else -point.value
        if is_better(signed, best):
            best = signed
            better.append(point)
    return better
