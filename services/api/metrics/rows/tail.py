"""Reads reports of a group in pieces of bounded size, and counts them without keeping others from their turn.

A report may have a hundred thousand values, each of which takes a microsecond, and a process has one thread for all
that it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import Struct

from services.api.metrics.rows import statements as sql

NEWEST_STEP: Final = 2**31 - 1
_REPORTS_AT_ONCE: Final = 100
_BYTES_AT_ONCE: Final = 1024 * 1024
"""As they are stored, which is compressed: several times as many in memory."""
VALUES_AT_ONCE: Final = 20_000
"""Values that are counted between two turns of others."""


class Piece(Struct, frozen=True):
    """The next reports, as step and metrics; nothing is behind them if it is the last one."""

    reports: list[tuple[int, dict[str, Any]]]
    is_last: bool


async def read_piece(driver: Any, trial_id: int, group: str, *, after: int, up_to: int = NEWEST_STEP) -> Piece:
    """The next reports of a group ``after`` a step that were not taken back; at least one, if there is any."""
    rows = await driver.fetch(sql.TAIL, trial_id, group, after, up_to, _REPORTS_AT_ONCE, _BYTES_AT_ONCE)
    reports = [(step, msgspec.json.decode(text)) for step, text, _ in rows]
    # Each row says how many there were before those were left out that are too much at once.
    return Piece(reports, not rows or len(rows) == rows[0][2] < _REPORTS_AT_ONCE)


class Turns:
    """Gives others their turn now and then."""

    def __init__(self) -> None:
        self._values = 0

    async def count(self, values: int) -> None:
        self._values += values
        if self._values >= VALUES_AT_ONCE:
            self._values = 0
            await asyncio.sleep(0)


def parts(metrics: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Metrics, as many at a time as are counted in one turn."""
    if len(metrics) <= VALUES_AT_ONCE:
        yield metrics
        return
    for names in batches(metrics):
        yield {name: metrics[name] for name in names}


def batches(names: Iterable[str]) -> Iterator[list[str]]:
    """Names, as many at a time as are counted in one turn."""
    rest = iter(names)
    while some := list(islice(rest, VALUES_AT_ONCE)):
        yield some
