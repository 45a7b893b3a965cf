"""What was used: of each allocation while somebody asks, and of days and months as they were summed up.

Source: docs/reference/platform.md 13; docs/reference/scheduling.md 10.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import date, datetime
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Select, case, func, literal, or_, select, text, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.db.engine import Database
from libs.db.tables.cluster import usage_days
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import allocation_usage
from libs.db.tables.users import users
from libs.natural_order.sql import natural
from services.api.queries.cluster.usage_spans import clipped, spans

PAGE: Final = 2_000
_QUEUED: Final = "queued"
_COLUMNS: Final = allocation_usage.c

# By the indexes of a trial's metrics and of a task's checkpoints. Trials report far more often than they turn to
# something else, and only the last report before that ends a span: the others stay in the database.
_REPORTS: Final = text("""
    SELECT allocation_id, moment, kind FROM (
      SELECT u.allocation_id, found.moment, found.kind,
             lead(found.kind) OVER (PARTITION BY u.allocation_id ORDER BY found.moment, found.kind) AS next_kind
      FROM allocation_usage u
      JOIN trial_tasks t ON t.task_id = u.task_id
      CROSS JOIN LATERAL (
        SELECT m.end_time AS moment, CASE m.kind WHEN 'VALIDATION' THEN 'validation' ELSE 'training' END AS kind
        FROM metrics m
        WHERE m.trial_id = t.trial_id AND NOT m.archived AND m.kind <> 'PROFILING'
          AND m.kind IN ('TRAINING', 'VALIDATION')
          AND m.end_time > greatest(u.start_time, :after) AND m.end_time < coalesce(u.end_time, :now)
        UNION ALL
        SELECT c.report_time, 'checkpointing' FROM checkpoints c
        WHERE c.task_id = u.task_id
          AND c.report_time > greatest(u.start_time, :after) AND c.report_time < coalesce(u.end_time, :now)
      ) found
      WHERE u.allocation_id = ANY(:allocations)
    ) report
    WHERE kind IS DISTINCT FROM next_kind
    ORDER BY allocation_id, moment, kind
""")


class Window(Struct, frozen=True, kw_only=True):
    """What is asked for, and the moment that counts as the end of what still runs."""

    after: datetime
    before: datetime
    now: datetime

    def slot_seconds(self, row: Any) -> float:
        """Of an allocation, inside of the window."""
        end = min(row.end_time or self.now, self.before)
        seconds: float = max((end - max(row.start_time, self.after)).total_seconds(), 0.0) * row.slots
        return seconds


class TrialUsage(Struct, frozen=True, kw_only=True):
    """Slots that a trial held for a while, inside of the window, and what it did then."""

    kind: str
    start: datetime
    end: datetime
    experiment_id: int
    user_id: int
    username: str
    labels: list[str]
    slots: int

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds() * self.slots


class PeriodUsage(Struct, frozen=True, kw_only=True):
    """Slot seconds by type and key: ``{"username": {"ann": 3600.0}, "total": {"total": 3600.0}, ...}``."""

    start: str
    seconds: dict[str, dict[str, float]]


async def allocation_pages(db: Database, window: Window) -> AsyncIterator[Sequence[Any]]:
    """All allocations that held slots in the window, by their start.

    Between two pages it keeps neither a connection nor a turn: whoever reads them may take any time.
    """
    key = tuple_(_COLUMNS.start_time, _COLUMNS.allocation_id)
    query = _in_window(window).order_by(_COLUMNS.start_time, _COLUMNS.allocation_id).limit(PAGE)
    last: Any = None
    while True:
        page = query if last is None else query.where(key > (last.start_time, last.allocation_id))
        async with db.searches, db.read() as connection:
            rows = (await connection.execute(page)).all()
        if rows:
            yield rows
        if len(rows) < PAGE:
            return
        last = rows[-1]


async def trial_usage(db: Database, window: Window) -> list[TrialUsage]:
    """What trials did in the window, by the start of each span."""
    found: list[TrialUsage] = []
    async for rows in allocation_pages(db, window):
        trials = [row for row in rows if row.task_type == "TRIAL"]
        async with db.searches, db.read() as connection:
            reports = await _reports(connection, trials, window)
        for row in trials:
            whole = spans(row.start_time, row.end_time or window.now, reports.get(row.allocation_id, ()))
            parts = (clipped(span, window.after, window.before) for span in whole)
            found += [
                TrialUsage(
                    kind=part.kind,
                    start=part.start,
                    end=part.end,
                    experiment_id=row.experiment_id or 0,
                    user_id=row.owner_id,
                    username=row.username,
                    labels=row.labels,
                    slots=row.slots,
                )
                for part in parts
                if part is not None
            ]
    return sorted(found, key=lambda usage: usage.start)


async def usage_by_day(connection: AsyncConnection, first: date, last: date) -> list[PeriodUsage]:
    return await _by_period(connection, first, last, func.to_char(usage_days.c.day, "YYYY-MM-DD"))


async def usage_by_month(connection: AsyncConnection, first: date, last: date) -> list[PeriodUsage]:
    return await _by_period(connection, first, last, func.to_char(usage_days.c.day, "YYYY-MM"))


async def _by_period(connection: AsyncConnection, first: date, last: date, period: Any) -> list[PeriodUsage]:
    columns = usage_days.c
    query = (
        select(period.label("period"), columns.aggregation_type, columns.aggregation_key, func.sum(columns.seconds))
        .where(columns.day.between(first, last), columns.aggregation_type != _QUEUED)
        .group_by("period", columns.aggregation_type, columns.aggregation_key)
        .order_by("period", columns.aggregation_type, natural(columns.aggregation_key))
    )
    found: dict[str, dict[str, dict[str, float]]] = {}
    for start, kind, key, seconds in await connection.execute(query):
        found.setdefault(start, {}).setdefault(kind, {})[key] = seconds
    return [PeriodUsage(start=start, seconds=seconds) for start, seconds in found.items()]


def _in_window(window: Window) -> Select[Any]:
    labels = case(
        (func.jsonb_typeof(experiments.c.config["labels"]) == "array", experiments.c.config["labels"]),
        else_=_COLUMNS.labels,
    )
    end = func.coalesce(_COLUMNS.end_time, literal(window.now))
    return (
        select(
            allocation_usage.c.allocation_id,
            _COLUMNS.task_type,
            _COLUMNS.owner_id,
            _COLUMNS.workspace_name,
            _COLUMNS.experiment_id,
            _COLUMNS.pool,
            _COLUMNS.slots,
            _COLUMNS.start_time,
            _COLUMNS.end_time,
            func.coalesce(users.c.username, "").label("username"),
            labels.label("labels"),
        )
        .outerjoin(users, users.c.id == _COLUMNS.owner_id)
        .outerjoin(experiments, experiments.c.id == _COLUMNS.experiment_id)
        .where(
            _COLUMNS.start_time < window.before,
            # For the index; what still runs ends now.
            or_(_COLUMNS.end_time.is_(None), _COLUMNS.end_time > window.after),
            end > window.after,
        )
    )


async def _reports(
    connection: AsyncConnection, trials: Sequence[Any], window: Window
) -> dict[str, list[tuple[datetime, str]]]:
    """Of each allocation, when its trial reported what, in the order of time: the last of those of a kind in a row."""
    if not trials:
        return {}
    by_allocation: dict[str, list[tuple[datetime, str]]] = {}
    values = {"after": window.after, "now": window.now, "allocations": [row.allocation_id for row in trials]}
    for row in await connection.execute(_REPORTS, values):
        by_allocation.setdefault(row.allocation_id, []).append((row.moment, row.kind))
    return by_allocation
