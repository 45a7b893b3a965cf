"""Summaries in a column of their trial, written whole with each report; the form that the release before knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from libs.db.tables.metrics import NOTHING_FOLDED
from services.api.metrics import statements as sql
from services.api.metrics.fast_path import KnownTrial
from services.api.metrics.groups import summary_key
from services.api.metrics.measured import MeasuredTrial, PendingWrite
from services.api.metrics.rows.tail import Turns, read_piece
from services.api.metrics.summary import GroupSummary, fold, fold_more


async def store_in_column(driver: Any, writes: Sequence[PendingWrite]) -> dict[int, KnownTrial]:
    """Bring summaries and totals of trials up to date whose reports are written already; returns the trials by id."""
    if not writes:
        return {}
    for write in writes:
        await _count(driver, write)
    versions = await driver.fetch(
        sql.UPDATE_TRIALS,
        *sql.columns(
            (w.trial.id, w.trial.total_batches, msgspec.json.encode(w.trial.summary).decode()) for w in writes
        ),
    )
    trials = {write.trial.id: write.trial for write in writes}
    return {trial_id: _known(trials[trial_id], version) for trial_id, version in versions}


def _known(trial: MeasuredTrial, version: int) -> KnownTrial:
    return KnownTrial(
        trial.experiment_id,
        trial.state,
        trial.run,
        trial.total_batches,
        trial.summary,
        trial.restarts,
        trial.task_id,
        version,
    )


async def _count(driver: Any, write: PendingWrite) -> None:
    """Bring summary and total of the trial up to date, in memory; its rows are written already."""
    report, trial = write.report, write.trial
    assert report.step is not None
    key = summary_key(report.group)
    if write.position.back:
        for touched in {report.group, *(row.group for row in write.position.back)}:
            trial.summary[summary_key(touched)] = await _summarise(driver, trial.id, touched)
        trial.total_batches = await driver.fetchval(sql.SURVIVING_STEPS, trial.id)
        return
    group = trial.summary.setdefault(key, {})
    if write.merged is not None:
        fold_more(group, write.merged.added, newest=write.position.newest)
    else:
        fold(group, report.measured.avg, newest=write.position.newest)
    trial.total_batches = max(trial.total_batches, report.step)


async def _summarise(driver: Any, trial_id: int, group: str) -> GroupSummary:
    summary: GroupSummary = {}
    turns, summarised, is_last = Turns(), NOTHING_FOLDED, False
    while not is_last:
        piece = await read_piece(driver, trial_id, group, after=summarised)
        for step, metrics in piece.reports:
            fold(summary, metrics, newest=True)
            summarised = step
            await turns.count(len(summary))
        is_last = piece.is_last
    return summary
