"""What past runs say to a plan: how long a request is expected to run. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from services.scheduler.plan.forecast.run_times import PastRuns, RunKind


def expected_of(row: Mapping[Any, Any], past: PastRuns) -> timedelta | None:
    """How long an allocation that waits is expected to run; None where nothing like it has run before."""
    if row["owner_id"] is None or row["task_type"] is None:
        return None
    kind = RunKind(owner=row["owner_id"], task_type=row["task_type"], pool=row["pool"], slots=row["slots"])
    run = past.expect(kind)
    return None if run.known_from == "nothing" else run.length
