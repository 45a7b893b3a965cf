"""How far an import is, and how long the rest will take. Pure."""

from __future__ import annotations

from collections.abc import Mapping


class Pace:
    """Rows that were read of all there are, since a moment."""

    def __init__(self, rows_by_kind: Mapping[str, int], *, now: float) -> None:
        self._rows_by_kind = rows_by_kind
        self._left = sum(rows_by_kind.values())
        self._read = 0
        self._began = now

    def passed_over(self, rows: int) -> None:
        """So many rows need not be read."""
        self._left -= rows

    def line(self, kind: str, done: int, *, more: int, now: float) -> str:
        """What is said after a batch: ``done`` rows of a kind, ``more`` of them with this batch."""
        self._read += more
        self._left = max(self._left - more, 0)
        total = self._rows_by_kind.get(kind, 0)
        line = f"{kind}: {done} of {total}"
        if self._read and self._left:
            line += f", about {_duration(self._left * (now - self._began) / self._read)} remain for {self._left} rows"
        return line


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, hours = whole // 60 % 60, whole // 3600
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
