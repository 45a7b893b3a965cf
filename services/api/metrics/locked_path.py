"""The locked path, for any report: lock the trials of a batch, read what each report meets, decide, write all at once.

A batch holds at most one report per trial (profiling apart), so no report depends on another of its batch, and each is
accepted or refused by itself. Locks are taken in the order experiments, trials, summaries in rows, each in the order of
their ids. What a report does to a summary depends on its form: ``column_form.py``, ``row_form.py``.
Source: docs/reference/experiments.md 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from libs.errors import InvalidRequest, NotFound, ResoluteError
from libs.events.changes import ExperimentChanged, PublicEvent, TrialChanged
from libs.states import experiment as experiment_states
from services.api.metrics import statements as sql
from services.api.metrics.announcements import report_event
from services.api.metrics.column_form import store_in_column
from services.api.metrics.groups import Kind
from services.api.metrics.measured import BatchOutcome, MeasuredExperiment, MeasuredTrial, PendingWrite
from services.api.metrics.merge import from_document, merge, to_document
from services.api.metrics.report import MetricReport, encode
from services.api.metrics.rollback import ReportPosition, StoredReport, find_position
from services.api.metrics.row_form import open_rows, prepare_rows, store_in_rows
from services.api.metrics.rows.promotion import next_to_promote, promote
from services.api.metrics.summary import decode_summary
from services.api.metrics.validations import (
    Score,
    SearchGoal,
    Validation,
    ValidationStanding,
    advance,
    is_better,
    standing,
)


class ExperimentsNeeded(Exception):
    """The batch turned out to change experiments, whose locks come before those of trials."""


async def store_locked(
    driver: Any, reports: Sequence[MetricReport], *, with_experiments: bool, to_rows: bool = False
) -> BatchOutcome:
    """Store a batch with the asyncpg connection ``driver``, in a transaction that the caller has begun and will commit.

    with_experiments  lock the experiments as well, without which nothing about validations can change
    to_rows           put the summaries of trials that are reported into rows, as many as a transaction can

    Raises ExperimentsNeeded, and what the database raises; nothing may be committed then.
    """
    trial_ids = list({report.trial_id for report in reports})
    experiments = await _lock_experiments(driver, trial_ids) if with_experiments else {}
    trials = await _lock_trials(driver, trial_ids)

    outcome = BatchOutcome([_refusal(report, trials.get(report.trial_id)) for report in reports])
    accepted = [n for n, error in enumerate(outcome.errors) if error is None]
    profiling = [reports[n] for n in accepted if reports[n].kind is Kind.PROFILING]
    ordinary = {n: reports[n] for n in accepted if reports[n].kind is not Kind.PROFILING}
    await _open_summaries(driver, [trials[report.trial_id] for report in ordinary.values()], to_rows=to_rows)

    writes: list[PendingWrite] = []
    positions = await _find_positions(driver, ordinary, trials)
    for n, report in ordinary.items():
        position, old = positions.get(n, (ReportPosition(), None))
        write = PendingWrite(report, trials[report.trial_id], position)
        if old is not None:
            try:
                write.merged = merge(from_document(old), report.measured)
            except InvalidRequest as error:
                outcome.errors[n] = error
                continue
            if not write.merged.changed and not position.back:
                continue  # a request that was repeated
        writes.append(write)
    if not with_experiments and any(write.moves_standing for write in writes):
        raise ExperimentsNeeded

    await _write(driver, writes, profiling, experiments, outcome)
    outcome.events = [*_trial_events(writes, profiling, trials), *await _tell_searchers(driver, writes, experiments)]
    return outcome


def _refusal(report: MetricReport, trial: MeasuredTrial | None) -> ResoluteError | None:
    if trial is None:
        return NotFound("trial", report.trial_id)
    if report.run != trial.run:
        return InvalidRequest(f"invalid run id, {report.run} (reported) != {trial.run} (expected): invalid arguments")
    return None


async def _lock_experiments(driver: Any, trial_ids: list[int]) -> dict[int, MeasuredExperiment]:
    return {
        row["id"]: MeasuredExperiment(
            id=row["id"],
            changed=ExperimentChanged(
                experiment_id=row["id"],
                what="searcher",
                state=row["state"],
                name=row["name"],
                job_id=row["job_id"],
                owner=row["owner"],
                project_id=row["project_id"],
                progress=row["progress"],
            ),
            is_searching=not row["unmanaged"] and row["state"] in experiment_states.LIVE,
            goal=SearchGoal(row["metric"], row["smaller_is_better"]),
            best_signed=row["best_signed"],
        )
        for row in await driver.fetch(sql.LOCK_EXPERIMENTS, trial_ids)
    }


async def _lock_trials(driver: Any, trial_ids: list[int]) -> dict[int, MeasuredTrial]:
    trials = {}
    for row in await driver.fetch(sql.LOCK_TRIALS, trial_ids):
        ident, experiment_id, state, run, total, summary, value, signed, best_id, latest_id, restarts, task_id = row
        # The summary is absent where it is in rows.
        best = None if signed is None else Score(value, signed)
        trials[ident] = MeasuredTrial(
            ident,
            experiment_id,
            state,
            run,
            total,
            decode_summary(summary or "{}"),
            ValidationStanding(best, best_id, latest_id),
            restarts,
            task_id or "",
            {} if summary is None else None,
        )
    return trials


async def _open_summaries(driver: Any, trials: Sequence[MeasuredTrial], *, to_rows: bool) -> None:
    """What is only profiled stays out of it: appending other reports need not wait for that.

    With ``to_rows``, trials with many metrics stay in their columns until a later batch has room for them.
    """
    in_columns = {trial.id: trial for trial in trials if trial.groups is None}
    if to_rows and in_columns:
        chosen = next_to_promote({ident: trial.count_of_names for ident, trial in in_columns.items()})
        await promote(driver, chosen)
        for ident in chosen:
            in_columns[ident].summary, in_columns[ident].groups = {}, {}
    await open_rows(driver, {trial.id: trial for trial in trials if trial.groups is not None})


async def _find_positions(
    driver: Any, reports: Mapping[int, MetricReport], trials: Mapping[int, MeasuredTrial]
) -> dict[int, tuple[ReportPosition, Mapping[str, Any] | None]]:
    """The position of each report that is not simply the newest of its trial, and the row it meets there."""
    probes: list[tuple[int, int, int, int, str, str]] = []
    met = []
    for n, report in reports.items():
        trial = trials[report.trial_id]
        assert report.step is not None
        if report.step > trial.total_batches:
            continue  # nothing of the trial is at its step or later
        met.append(n)
        probes.extend((n, trial.id, report.run, report.step, report.group, group) for group in trial.reported)
    rows: dict[int, list[StoredReport]] = {n: [] for n in met}
    documents: dict[int, str] = {}
    if probes:
        for row in await driver.fetch(sql.NEIGHBOURS, *sql.columns(probes)):
            n, ident, run, group, kind, step, document = row
            rows[n].append(StoredReport(id=ident, run=run, group=group, kind=Kind(kind), step=step))
            if document is not None:
                documents[ident] = document
    positions: dict[int, tuple[ReportPosition, Mapping[str, Any] | None]] = {}
    for n in met:
        report = reports[n]
        assert report.step is not None
        position = find_position(rows[n], group=report.group, kind=report.kind, run=report.run, step=report.step)
        old = None if position.existing is None else msgspec.json.decode(documents[position.existing.id])
        positions[n] = (position, old)
    return positions


async def _write(
    driver: Any,
    writes: Sequence[PendingWrite],
    profiling: Sequence[MetricReport],
    experiments: Mapping[int, MeasuredExperiment],
    outcome: BatchOutcome,
) -> None:
    in_rows = [write for write in writes if write.trial.groups is not None]
    await prepare_rows(driver, in_rows)
    if archived := [(write.trial.id, row.id) for write in writes for row in write.position.back]:
        await driver.execute(sql.ARCHIVE, *sql.columns(archived))
    if sealed := [each for write in writes for each in _groups_changed_before_their_newest(write)]:
        await driver.execute(sql.FORGET_LEVELS, *sql.columns(sealed))
    row_ids = await _insert(driver, [write for write in writes if write.merged is None])
    if replaced := [_replacement(write) for write in writes if write.merged is not None]:
        await driver.execute(sql.REPLACE_METRICS, *sql.columns(replaced))
    if profiling:
        rows = [(r.trial_id, r.run, r.group, r.end_time, r.document) for r in profiling]
        await driver.execute(sql.INSERT_PROFILING, *sql.columns(rows))
    outcome.written = await store_in_column(driver, [write for write in writes if write.trial.groups is None])
    outcome.in_rows = await store_in_rows(driver, in_rows)
    await _update_standings(driver, writes, row_ids, experiments)


def _groups_changed_before_their_newest(write: PendingWrite) -> Iterator[tuple[int, str, int]]:
    """Trial, group, and the step from which on reports are taken back, added to, or come before others."""
    report, position = write.report, write.position
    assert report.step is not None
    if position.back or write.merged is not None or not position.newest:
        for group in {report.group, *(row.group for row in position.back)}:
            yield write.trial.id, group, report.step


async def _insert(driver: Any, writes: Sequence[PendingWrite]) -> dict[int, int]:
    """Insert the rows of ``writes``; returns their ids by trial."""
    if not writes:
        return {}
    reports = [write.report for write in writes]
    rows = [(r.trial_id, r.run, r.group, r.kind.value, r.step, r.end_time, r.document) for r in reports]
    return dict(await driver.fetch(sql.INSERT_ROWS, *sql.columns(rows)))


def _replacement(write: PendingWrite) -> tuple[int, int, str]:
    assert write.merged is not None
    assert write.position.existing is not None
    document = to_document(write.report.kind, write.merged.whole)
    return write.trial.id, write.position.existing.id, encode(document)


async def _update_standings(
    driver: Any,
    writes: Sequence[PendingWrite],
    row_ids: Mapping[int, int],
    experiments: Mapping[int, MeasuredExperiment],
) -> None:
    changed: list[MeasuredTrial] = []
    overtaken: set[int] = set()
    for write in writes:
        if not write.moves_standing:
            continue
        trial, before = write.trial, write.trial.standing
        experiment = experiments[trial.experiment_id]
        trial.standing = await _new_standing(driver, write, row_ids, experiment.goal)
        if trial.standing == before:
            continue
        changed.append(trial)
        reached = trial.standing.score
        if before.best_id != trial.standing.best_id and (
            write.position.back or (reached is not None and is_better(reached.signed, experiment.best_signed))
        ):
            overtaken.add(experiment.id)
    if changed:
        await driver.execute(sql.UPDATE_STANDINGS, *sql.columns(_standing_row(trial) for trial in changed))
    if overtaken:
        await driver.execute(sql.UPDATE_BEST_TRIALS, sorted(overtaken))


async def _new_standing(
    driver: Any, write: PendingWrite, row_ids: Mapping[int, int], goal: SearchGoal
) -> ValidationStanding:
    if write.merged is None and write.position.newest and not write.position.back:
        validation = Validation(row_ids[write.trial.id], write.report.measured.avg)
        return advance(write.trial.standing, validation, goal)
    rows = await driver.fetch(sql.SURVIVING_VALIDATIONS, write.trial.id)
    return standing((Validation(row["id"], msgspec.json.decode(row["metrics"])) for row in rows), goal)


def _standing_row(trial: MeasuredTrial) -> tuple[int, float | None, float | None, int | None, int | None]:
    best = trial.standing.score
    value, signed = (None, None) if best is None else (best.value, best.signed)
    return trial.id, value, signed, trial.standing.best_id, trial.standing.latest_id


async def _tell_searchers(
    driver: Any, writes: Sequence[PendingWrite], experiments: Mapping[int, MeasuredExperiment]
) -> list[PublicEvent]:
    told = []
    for write in writes:
        if write.report.kind is not Kind.VALIDATION:
            continue
        experiment = experiments[write.trial.experiment_id]
        # A step that is reported in parts is news to the search when the part with its metric comes.
        is_news = write.merged is None or experiment.goal.metric in write.merged.added
        if experiment.is_searching and is_news:
            told.append((experiment.id, write.trial.id, encode({"metrics": write.metrics})))
    if told:
        await driver.execute(sql.TELL_SEARCHERS, *sql.columns(told))
    return [experiments[ident].changed for ident in sorted({ident for ident, _, _ in told})]


def _trial_events(
    writes: Sequence[PendingWrite], profiling: Sequence[MetricReport], trials: Mapping[int, MeasuredTrial]
) -> Iterator[TrialChanged]:
    written = {write.trial.id for write in writes}
    for write in writes:
        metrics = write.metrics if write.report.kind is Kind.VALIDATION else None
        yield report_event(write.trial.id, write.trial, write.report.group, write.report.step, metrics)
    for trial_id, group in {report.trial_id: report.group for report in profiling}.items():
        if trial_id not in written:
            yield report_event(trial_id, trials[trial_id], group, None)
