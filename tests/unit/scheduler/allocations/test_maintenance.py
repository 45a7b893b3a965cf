"""When allocations have to leave because of maintenance, at the ends of what moments can be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from libs.maintenance.windows import MaintenanceWindow
from services.scheduler.allocations.maintenance import CHECK_S, reason_to_leave
from tests.harness import FakeClock
from tests.unit.scheduler.rows import allocation

NOW = FakeClock().now()
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
NOTICE = timedelta(seconds=60 + CHECK_S)


@pytest.mark.parametrize(
    ("starts_at", "leaves"),
    [
        (FIRST, True),
        (NOW, True),
        (NOW + NOTICE, True),
        (NOW + NOTICE + timedelta(seconds=1), False),
        (LAST - timedelta(seconds=1), False),
    ],
)
def test_what_can_be_asked_leaves_in_time_whatever_a_window_says(starts_at: datetime, *, leaves: bool) -> None:
    window = MaintenanceWindow(id=1, pool="default", starts_at=starts_at, ends_at=LAST)
    row = allocation(is_ready=True, preemption_timeout_s=60)
    assert (reason_to_leave(row, [window], now=NOW, plan_binds=True) is not None) is leaves
