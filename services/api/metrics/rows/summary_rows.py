"""Summary rows of one group of a trial: read by name, folded in memory, written back.

Reports are folded in the order (step, id), as the summary in a column is, so both have the same sums to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from libs.db.tables.metrics import NOTHING_FOLDED
from services.api.metrics.rows import statements as sql
from services.api.metrics.rows.tail import NEWEST_STEP, Turns, batches, parts, read_piece
from services.api.metrics.summary import GroupSummary, MetricSummary, fold_more

_decoder: Final = msgspec.json.Decoder(MetricSummary)


@dataclass(slots=True)
class GroupRow:
    """A row of ``metric_groups``, with the step of the newest report of the group as it was read."""

    trial_id: int
    group: str
    summary_id: int
    run: int
    folded_step: int = NOTHING_FOLDED
    newest_step: int = NOTHING_FOLDED


def group_row(row: Any) -> GroupRow:
    """A group as the statements of groups return it."""
    trial_id, group, summary_id, run, folded_step, newest_step = row
    return GroupRow(
        trial_id, group, summary_id, run, folded_step, NOTHING_FOLDED if newest_step is None else newest_step
    )


class _Names:
    """Summaries of the names that were met, and the steps of their last values."""

    def __init__(self, summary_id: int) -> None:
        self._summary_id = summary_id
        self._known: set[str] = set()
        self._turns = Turns()
        self.summaries: GroupSummary = {}
        self.last_steps: dict[str, int] = {}

    async def meet(self, driver: Any, names: Iterable[str]) -> None:
        """Read those that were not met before."""
        missing = [name for name in dict.fromkeys(names) if name not in self._known]
        if not missing:
            return
        self._known.update(missing)
        for some in batches(missing):
            for name, summary, last, step in await driver.fetch(sql.SUMMARIES_OF_NAMES, self._summary_id, some):
                self.summaries[name] = _decoder.decode(summary)
                if last is not None:
                    self.summaries[name].last = msgspec.json.decode(last)
                self.last_steps[name] = step

    async def fold(self, metrics: Mapping[str, Any], *, newest: int | None) -> None:
        """Add metrics whose names were met.

        newest  the step of their report, if no report of the group has a later one
        """
        for some in parts(metrics):
            fold_more(self.summaries, some, newest=newest is not None)
            if newest is not None:
                self.last_steps.update(dict.fromkeys(some, newest))
            await self._turns.count(len(some))

    async def store(self, driver: Any) -> None:
        for some in batches(self.summaries):
            names, texts, lasts, steps = [], [], [], []
            for name in some:
                summary = self.summaries[name]
                last, summary.last = summary.last, UNSET
                names.append(name)
                texts.append(msgspec.json.encode(summary).decode())
                lasts.append(None if last is UNSET else msgspec.json.encode(last).decode())
                steps.append(self.last_steps.get(name, NOTHING_FOLDED))
            await driver.execute(sql.STORE_SUMMARIES, self._summary_id, names, texts, lasts, steps)


class Bounds(Struct, frozen=True):
    """How many reports, or values in them, are folded at once: about so many."""

    reports: int
    values: int


async def fold_tail(driver: Any, row: GroupRow, *, up_to: int = NEWEST_STEP, most: Bounds | None = None) -> int:
    """Fold what is not in the summary yet, in the transaction of the caller, who has locked the group.

    up_to  a step that no report can come before any more, unless the summary is made anew
    most   of the oldest reports; None: fold all
    Returns how many reports were folded; ``row`` follows.
    """
    names = _Names(row.summary_id)
    folded, values, is_last = 0, 0, False
    while not is_last and (most is None or (folded < most.reports and values < most.values)):
        piece = await read_piece(driver, row.trial_id, row.group, after=row.folded_step, up_to=up_to)
        await names.meet(driver, (name for _, metrics in piece.reports for name in metrics))
        for step, metrics in piece.reports:
            await names.fold(metrics, newest=step)
            row.folded_step = step
            values += len(metrics)
        folded += len(piece.reports)
        is_last = piece.is_last
    if folded:
        await names.store(driver)
        await update_group(driver, row)
    return folded


async def fold_late(driver: Any, row: GroupRow, metrics: Mapping[str, Any], *, newest: bool) -> None:
    """Add metrics of a step that is folded already; the tail must be folded.

    newest  the step is that of the newest report of the group
    """
    names = _Names(row.summary_id)
    await names.meet(driver, metrics)
    await names.fold(metrics, newest=row.folded_step if newest else None)
    await names.store(driver)
    await update_group(driver, row)


async def summarise_anew(driver: Any, row: GroupRow) -> None:
    """Make the summary from all reports of the group that were not taken back."""
    row.summary_id = await driver.fetchval(sql.BEGIN_ANEW, row.trial_id, row.group)
    row.folded_step = NOTHING_FOLDED
    await fold_tail(driver, row)
    row.newest_step = row.folded_step
    await update_group(driver, row)


async def update_group(driver: Any, row: GroupRow) -> None:
    await driver.execute(sql.UPDATE_GROUP, row.trial_id, row.group, row.run, row.folded_step)
