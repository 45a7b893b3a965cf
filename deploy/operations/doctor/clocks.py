"""Clocks of the parts compared with that of this machine. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from deploy.operations.doctor.findings import Finding, ok, problem

TOLERATED_S: Final = 2.0
"""What the ends of sessions and the ages of reports are still right with."""


def clock_difference(part: str, *, theirs: datetime, ours: datetime) -> Finding:
    difference = (theirs - ours).total_seconds()
    if abs(difference) <= TOLERATED_S:
        return ok(part, f"its clock agrees with ours within {TOLERATED_S:.0f} s")
    return problem(
        part,
        f"its clock is {abs(difference):.0f} s {'ahead of' if difference > 0 else 'behind'} ours",
        remedy="synchronize the clocks of both machines (NTP): sessions end by them",
    )
