"""What has been used in the periods of now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from libs.db.engine import Connection
from libs.slot_hours.periods import Period, begin_of
from libs.slot_hours.use import Key, Use, UseSince


class PeriodUse:
    """Remembers what has settled of each period until it is over. Those who read it at the same time may share one."""

    def __init__(self) -> None:
        self._since: dict[Period, UseSince] = {}

    async def read(self, connection: Connection, period: Period, now: datetime) -> Mapping[Key, Use]:
        """Slot-seconds by pool, owner and workspace."""
        begin = begin_of(period, now)
        if period not in self._since or self._since[period].begin != begin:
            self._since[period] = UseSince(begin)
        return await self._since[period].read(connection, now)
