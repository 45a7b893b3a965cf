"""Traces what the scheduler does for an experiment, below the request that created it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import select

from libs.db.engine import Connection
from libs.db.tables.experiments import experiments
from libs.db.tables.tasks import jobs
from libs.tracing import NO_SPAN, Span, is_tracing, parse_traceparent, span


@asynccontextmanager
async def reconcile_span(connection: Connection, experiment_id: int) -> AsyncIterator[Span]:
    """A span for one look at an experiment; none when its submission was not traced."""
    parent = parse_traceparent(await _traceparent(connection, experiment_id)) if is_tracing() else None
    if parent is None:
        yield NO_SPAN
        return
    with span("experiment.reconcile", parent=parent, resolute__experiment=experiment_id) as traced:
        yield traced


async def _traceparent(connection: Connection, experiment_id: int) -> str | None:
    query = (
        select(jobs.c.traceparent)
        .join(experiments, experiments.c.job_id == jobs.c.job_id)
        .where(experiments.c.id == experiment_id)
    )
    found: str | None = (await connection.execute(query)).scalar()
    return found
