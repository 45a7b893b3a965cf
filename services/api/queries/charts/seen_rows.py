"""Which reports of a trial a stream has read, so that it reads each once and misses none. Pure.

A row is given its id before it is committed, so one with a smaller id may be seen after one with a larger: whoever
asks only for what lies behind the newest id never gets it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

LATE: Final = timedelta(minutes=10)
"""How much later than the newest report one that is older may still come: transactions are far shorter, and agents do
not wait for each other."""
_LOOK_AT: Final = 10_000


class SeenRows:
    """All up to ``floor_id``, and those of ``recent``, which were reported in the last while before the newest."""

    def __init__(self) -> None:
        self.floor_id = 0
        self.newest: datetime | None = None
        self._recent: dict[int, datetime] = {}
        self._most = _LOOK_AT

    @property
    def recent(self) -> list[int]:
        self._forget()
        return list(self._recent)

    def add(self, row_id: int, reported: datetime) -> None:
        self._recent[row_id] = reported
        self.newest = reported if self.newest is None else max(self.newest, reported)
        if len(self._recent) > self._most:
            self._forget()
            self._most = 2 * len(self._recent) + _LOOK_AT

    def _forget(self) -> None:
        """Of what is older only the largest id is kept."""
        if self.newest is None:
            return
        since = self.newest - LATE
        old = (row for row, reported in self._recent.items() if reported <= since)
        self.floor_id = max(self.floor_id, max(old, default=0))
        self._recent = {row: reported for row, reported in self._recent.items() if row > self.floor_id}
