"""Points of long series that were chosen before, as they go over the wire.

Choosing a thousand of a million points costs several times what showing them does, and a chart is asked for again and
again. All reports up to the sealed step of a group stay as they are until somebody gives the group another generation
(``levels/making.py``); so what was chosen of them is still what would be chosen. Where a window goes on behind that
step, nothing may have been reported there since: one more point moves the bounds of all stretches.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw, Struct

from services.api.queries.charts.levels import statements as sql
from services.api.queries.charts.time_series.chosen_points import MOST_WITH_LEVELS
from services.api.wire.charts.series import DataPoint

MOST_BYTES: Final = 8 * 2**20
"""Of all that is kept; a thousand points have a tenth of a megabyte."""
WINDOW_BYTES: Final = 1024
"""Of what is kept beside the points and the names."""
Points: TypeAlias = Any
"""``list[DataPoint]``, or as ``Raw`` the JSON of one, which goes into an answer as it is."""


class SeriesWindow(Struct, frozen=True):
    """What was asked for: metrics of a group between two steps, and how many points at most.

    names  each once; those of the first count where not everything fits
    """

    trial_id: int
    group: str
    names: tuple[str, ...]
    first: int
    last: int
    limit: int


class GroupStanding(Struct, frozen=True):
    """Of the reports of a group: their generation, up to which step they are sealed, and the newest step."""

    generation: int
    sealed_step: int
    newest_step: int

    def is_sealed(self, window: SeriesWindow) -> bool:
        """Whether all reports of a window are."""
        return self.last_step(window) <= self.sealed_step

    def last_step(self, window: SeriesWindow) -> int:
        """Behind which there is no report of a window."""
        return min(window.last, self.newest_step)


class _Kept(Struct, frozen=True):
    generation: int
    sealed_step: int
    points: Raw
    size: int
    """Bytes, as they were counted."""


class KeptPoints:
    """Those of the windows that were asked for last, in this process."""

    def __init__(self, *, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[SeriesWindow, _Kept] = OrderedDict()

    def find(self, window: SeriesWindow, standing: GroupStanding) -> Raw | None:
        """The points of a window, of the snapshot in which its group has this standing; None if they are not known."""
        kept = self._kept.get(window)
        if kept is None:
            return None
        if kept.generation != standing.generation or standing.last_step(window) > kept.sealed_step:
            self._forget(window)
            return None
        self._kept.move_to_end(window)
        return kept.points

    def keep(self, window: SeriesWindow, standing: GroupStanding, points: list[DataPoint]) -> Points:
        """Keep the points of a window, of the snapshot in which its group has this standing, if they will be found
        again; returns them.

        Whoever asks makes up the names, and each is kept although nothing is reported by it: no chart has so many.
        """
        if not points or len(window.names) > MOST_WITH_LEVELS or not standing.is_sealed(window):
            return points
        encoded = Raw(msgspec.json.encode(points, order="deterministic"))
        self._forget(window)
        size = len(encoded) + WINDOW_BYTES + sum(map(sys.getsizeof, (window.group, *window.names)))
        self._kept[window] = _Kept(standing.generation, standing.sealed_step, encoded, size)
        self._bytes += size
        while self._bytes > self._most_bytes:
            self._forget(next(iter(self._kept)))
        return encoded

    def _forget(self, window: SeriesWindow) -> None:
        kept = self._kept.pop(window, None)
        if kept is not None:
            self._bytes -= kept.size


async def read_standings(driver: Any, trial_id: int, groups: Collection[str]) -> Mapping[str, GroupStanding]:
    """Of those groups that have levels and reports."""
    if not groups:
        return {}
    rows = await driver.fetch(sql.STANDINGS, trial_id, list(groups))
    return {group: GroupStanding(*numbers) for group, *numbers in rows if None not in numbers}
