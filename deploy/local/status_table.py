"""The table of ``resolute status``: what runs, for how long, and where; 80 columns unless names are long. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from deploy.terminal import Colour, duration, paint

_GAP: Final = "  "


class StatusRow(NamedTuple):
    service: str
    where: str
    pid: int | None = None
    """None while it does not run."""
    restarts: int = 0
    up_s: float = 0.0
    is_steady: bool = True
    """False for one that ends again and again soon after its start."""


def as_text(rows: Sequence[StatusRow], *, coloured: bool) -> str:
    """One line for each row, columns as wide as they need to be."""
    service = max(len(row.service) for row in rows)
    pid = max(len(str(row.pid or "")) for row in rows)
    up = max(len(_up(row)) for row in rows)
    header = f"{'SERVICE':<{service}}{_GAP}{'PID':>{pid}}{_GAP}RESTARTS{_GAP}{'UP':>{up}}{_GAP}WHERE"
    lines = [
        f"{row.service:<{service}}{_GAP}{row.pid or '-':>{pid}}{_GAP}{row.restarts if row.pid else '-':>8}{_GAP}"
        f"{paint(f'{_up(row):>{up}}', _colour(row), coloured=coloured)}{_GAP}{row.where}".rstrip()
        for row in rows
    ]
    return "\n".join([paint(header, "bold", coloured=coloured), *lines])


def _up(row: StatusRow) -> str:
    return "down" if row.pid is None else duration(row.up_s)


def _colour(row: StatusRow) -> Colour:
    if row.pid is None:
        return "red"
    return "green" if row.is_steady else "yellow"
