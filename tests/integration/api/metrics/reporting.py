"""Reports as training code sends them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from services.api.metrics.report import MetricReport, make_report

TIME: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def a_report(
    trial: int, step: int, *, run: int = 1, group: str = "training", avg: dict[str, Any] | None = None
) -> MetricReport:
    """A report of the metric ``loss``, whose value is the step unless something else is given."""
    return make_report(
        trial_id=trial,
        run=run,
        group=group,
        step=step,
        end_time=TIME,
        avg={"loss": float(step)} if avg is None else avg,
        batches=None,
    )
