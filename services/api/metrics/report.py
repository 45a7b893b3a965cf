"""Metric report as the writer takes it: decoded, and checked as far as that is possible without its trial."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from libs.errors import InvalidRequest
from services.api.metrics.groups import Kind, check_epochs, check_group, kind_of
from services.api.metrics.merge import Measured, to_document


class MetricReport(Struct, frozen=True, kw_only=True):
    """One report of one trial.

    run       the run of the trial that sent it
    step      total of batches; None for profiling, and only there
    end_time  timezone-aware
    document  JSON of what is stored if the step was not reported before
    """

    trial_id: int
    run: int
    group: str
    kind: Kind
    step: int | None
    end_time: datetime
    measured: Measured
    document: str


def make_report(
    *,
    trial_id: int,
    run: int,
    group: str,
    step: int | None,
    end_time: datetime,
    avg: Mapping[str, Any],
    batches: list[Any] | None,
) -> MetricReport:
    """Check and prepare a report. Raises InvalidRequest (docs/reference/experiments.md 9.1)."""
    check_group(group)
    kind = kind_of(group)
    if kind is Kind.PROFILING:
        step = None
    else:
        step = step or 0
        check_epochs(avg)
    measured = Measured(avg, batches or None)
    return MetricReport(
        trial_id=trial_id,
        run=run,
        group=group,
        kind=kind,
        step=step,
        end_time=end_time,
        measured=measured,
        document=encode(to_document(kind, measured)),
    )


def encode(value: Any) -> str:
    """JSON text for a jsonb column. Raises InvalidRequest for text with NUL, which PostgreSQL cannot hold."""
    text = msgspec.json.encode(value).decode()
    if "\\u0000" in text and _has_nul(value):
        raise InvalidRequest("metrics cannot contain a NUL character")
    return text


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(_has_nul(key) or _has_nul(item) for key, item in value.items())
    return isinstance(value, list | tuple) and any(_has_nul(item) for item in value)
