"""Summaries in rows, on the locked path: what changes them at once, and what is left to be folded later.

A report beyond all others of its group is only inserted. One that is late, or adds to a report before it, is folded at
once, behind what was reported before it; a roll-back makes the summaries anew that lose reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from services.api.metrics.measured import MeasuredTrial, PendingWrite
from services.api.metrics.rows import statements as sql
from services.api.metrics.rows.append_path import AppendableTrial
from services.api.metrics.rows.summary_rows import (
    GroupRow,
    fold_late,
    fold_tail,
    group_row,
    summarise_anew,
    update_group,
)
from services.api.metrics.statements import SURVIVING_STEPS


async def open_rows(driver: Any, trials: Mapping[int, MeasuredTrial]) -> None:
    """Wait until no report of locked trials is being appended, and read how far they are."""
    if not trials:
        return
    await driver.execute(sql.LOCK_SUMMARIES, list(trials))
    for record in await driver.fetch(sql.LOCK_GROUPS, list(trials)):
        row = group_row(record)
        trial = trials[row.trial_id]
        assert trial.groups is not None
        trial.groups[row.group] = row
        trial.total_batches = max(trial.total_batches, row.newest_step)


async def prepare_rows(driver: Any, writes: Iterable[PendingWrite]) -> None:
    """Before the reports are written: fold what was reported before those that are folded at once."""
    for write in writes:
        if _is_folded_at_once(write) and (row := _groups(write).get(write.report.group)) is not None:
            await fold_tail(driver, row)


async def store_in_rows(driver: Any, writes: Sequence[PendingWrite]) -> dict[int, AppendableTrial]:
    """Bring summaries up to date whose reports are written already; returns the trials by id."""
    if not writes:
        return {}
    for write in writes:
        await _count(driver, write)
    await driver.execute(sql.MARK, [write.trial.id for write in writes])
    return {write.trial.id: _appendable(write.trial) for write in writes}


async def _count(driver: Any, write: PendingWrite) -> None:
    report, trial, groups = write.report, write.trial, _groups(write)
    assert report.step is not None
    row = groups.get(report.group)
    if row is None:
        summary_id = await driver.fetchval(sql.ADD_GROUP, trial.id, report.group, report.run)
        row = groups[report.group] = GroupRow(trial.id, report.group, summary_id, report.run)
    if row.run != report.run:
        row.run = report.run
        await update_group(driver, row)
    if write.position.back:
        for touched in sorted({report.group, *(back.group for back in write.position.back)}):
            await summarise_anew(driver, groups[touched])
        trial.total_batches = await driver.fetchval(SURVIVING_STEPS, trial.id)
        await driver.execute(sql.TAKE_BACK_STEPS, trial.id, trial.total_batches)
        return
    if _is_folded_at_once(write):
        metrics = report.measured.avg if write.merged is None else write.merged.added
        await fold_late(driver, row, metrics, newest=write.position.newest)
    row.newest_step = max(row.newest_step, report.step)
    trial.total_batches = max(trial.total_batches, report.step)


def _is_folded_at_once(write: PendingWrite) -> bool:
    return not write.position.back and (write.merged is not None or not write.position.newest)


def _groups(write: PendingWrite) -> dict[str, GroupRow]:
    assert write.trial.groups is not None
    return write.trial.groups


def _appendable(trial: MeasuredTrial) -> AppendableTrial:
    assert trial.groups is not None
    newest = {group: row.newest_step for group, row in trial.groups.items() if row.run == trial.run}
    return AppendableTrial(trial.experiment_id, trial.state, trial.run, trial.restarts, trial.task_id, newest)
