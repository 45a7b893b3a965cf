"""Who has to leave for maintenance in a replay: what runs on its nodes when it begins, and has no end before by itself.

Whoever can be asked is asked some time before, to save its state; the slots that come free by then are of use to nobody
else, as nothing starts there any more. So all are taken to leave when the maintenance begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from services.scheduler.plan.snapshot import HeldAllocation, Maintenance


class MaintenanceEnds:
    def __init__(self, windows: Iterable[Maintenance]) -> None:
        self._windows = sorted(windows, key=lambda window: window.starts_at)

    def __bool__(self) -> bool:
        return bool(self._windows)

    def before(self, held: HeldAllocation, end: datetime, now: datetime) -> datetime | None:
        """When ``held`` has to leave, if that is before ``end``; None where nothing makes it leave."""
        on = {node for node, _ in held.pods}
        for window in self._windows:
            if now < window.starts_at < end and not on.isdisjoint(window.nodes):
                return window.starts_at
        return None
