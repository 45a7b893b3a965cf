"""Summary rows of one group of a trial: read by name, folded in memory, written back.

Reports are folded in the order (step, id), as the summary in a column is, so both have the same sums to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from msgspec import UNSET

from libs.db.tables.metrics import NOTHING_FOLDED
from services.api.metrics.rows import statements as sql
from services.api.metrics.summary import GroupSummary, MetricSummary, fold_more

NEWEST_STEP: Final = 2**31 - 1
_READ_AT_ONCE: Final = 100
"""Reports; each may have ten thousand values."""
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
        self.summaries: GroupSummary = {}
        self.last_steps: dict[str, int] = {}

    async def meet(self, driver: Any, names: Iterable[str]) -> None:
        """Read those that were not met before."""
        missing = [name for name in dict.fromkeys(names) if name not in self._known]
        if not missing:
            return
        self._known.update(missing)
        for name, summary, last, step in await driver.fetch(sql.SUMMARIES_OF_NAMES, self._summary_id, missing):
            self.summaries[name] = _decoder.decode(summary)
            if last is not None:
                self.summaries[name].last = msgspec.json.decode(last)
            self.last_steps[name] = step

    async def store(self, driver: Any) -> None:
        if not self.summaries:
            return
        names, texts, lasts, steps = [], [], [], []
        for name, summary in self.summaries.items():
            last, summary.last = summary.last, UNSET
            names.append(name)
            texts.append(msgspec.json.encode(summary).decode())
            lasts.append(None if last is UNSET else msgspec.json.encode(last).decode())
            steps.append(self.last_steps.get(name, NOTHING_FOLDED))
        await driver.execute(sql.STORE_SUMMARIES, self._summary_id, names, texts, lasts, steps)


async def fold_tail(driver: Any, row: GroupRow, *, up_to: int = NEWEST_STEP, most: int | None = None) -> int:
    """Fold what is not in the summary yet, in the transaction of the caller, who has locked the group.

    up_to  a step that no report can come before any more, unless the summary is made anew
    most   fold about so many reports, the oldest
    Returns how many reports were folded; ``row`` follows.
    """
    names = _Names(row.summary_id)
    folded = 0
    while most is None or folded < most:
        reports = await driver.fetch(sql.TAIL, row.trial_id, row.group, row.folded_step, up_to, _READ_AT_ONCE)
        decoded = [(step, msgspec.json.decode(text)) for step, text in reports]
        await names.meet(driver, (name for _, metrics in decoded for name in metrics))
        for step, metrics in decoded:
            fold_more(names.summaries, metrics, newest=True)
            names.last_steps.update(dict.fromkeys(metrics, step))
            row.folded_step = step
        folded += len(reports)
        if len(reports) < _READ_AT_ONCE:
            break
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
    fold_more(names.summaries, metrics, newest=newest)
    if newest:
        names.last_steps.update(dict.fromkeys(metrics, row.folded_step))
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
