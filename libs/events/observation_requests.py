"""Requests to a launcher to report again what it sees, which the scheduler sends when it may have missed something.

Request and reply on ``launcher_rpc(pool, REPORT_AGAIN)``. The reply says that the request was understood; what there is
to report comes as observations.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

REPORT_AGAIN: Final = "report-again"
"""``ReportAgainRequest`` -> ``Done``."""


class ReportAgainRequest(Struct, frozen=True, kw_only=True, tag_field="type", tag="report_again.asked"):
    """What was heard last; what agrees with it need not be reported."""

    heard: dict[str, int]
    """Allocation -> revision of the newest observation that was applied, 0 for none."""
