"""One import from beginning to end, or from where the last one was cut off."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import asyncpg

from deploy.determined_import.kinds.copied import CopiedTable
from deploy.determined_import.kinds.order import chosen_kinds, reasons_left_behind
from deploy.determined_import.new_database import NewDatabase, open_new_database
from deploy.determined_import.old_database import OldDatabase, SourceCount, open_old_database
from deploy.determined_import.pace import Pace
from deploy.determined_import.refusal import ImportRefused, without_rows
from deploy.determined_import.repeating import (
    Repeated,
    mark_before_searches,
    prepare_repetition,
    record_after_searches,
    repeat_kind,
)
from deploy.determined_import.report import ImportReport, KindReport, LeftBehind
from deploy.determined_import.searches.continuing import continue_searches
from deploy.determined_import.storage_hosts import remember_storage_hosts

Say = Callable[[str], None]
T = TypeVar("T")


async def run_import(*, source_url: str, target_url: str, with_logs: bool, say: Say) -> ImportReport:
    """Import everything that is not there yet, and bring up to date what is. Raises ImportRefused.

    say  told of what is going on, a line at a time
    """
    kinds = chosen_kinds(with_logs=with_logs)
    async with (
        open_old_database(source_url, kinds) as old,
        open_new_database(target_url, source=old.cluster_id, kinds=kinds) as new,
    ):
        counted = {table.kind: await old.count(table) for table in kinds}
        pace = Pace({kind: count.wanted for kind, count in counted.items()}, now=time.monotonic())
        repeated = await _repeated_kinds(new, kinds, counted)
        reports: dict[str, Repeated] = {}
        if repeated:
            await _refusing("what was imported before", prepare_repetition(old, new))
        for table in kinds:
            if table.kind in repeated:
                reports[table.kind] = await _refusing(
                    table.kind, repeat_kind(old, new, table, say=say, pace=pace, counted=counted[table.kind])
                )
            else:
                await _import_kind(old, new, table, say=say, pace=pace, counted=counted[table.kind])
        await new.advance_sequences()
        await remember_storage_hosts(new.connection)
        await mark_before_searches(new)
        unfinished = await continue_searches(target_url)
        await record_after_searches(new)
        await new.finish()
        return ImportReport(
            source=old.cluster_id,
            kinds=await _kind_reports(new, kinds, reports),
            left_behind=await _left_behind(old, reasons_left_behind(with_logs=with_logs)),
            unfinished=unfinished,
            access_tokens=await old.access_tokens(),
        )


async def _repeated_kinds(
    new: NewDatabase, kinds: Sequence[CopiedTable], counted: Mapping[str, SourceCount]
) -> frozenset[str]:
    """Kinds that were imported before: all of them after an import that was complete, and after one that was cut off
    those of which the old database has another number of rows by now."""
    was_complete = await new.was_complete()
    repeated = set()
    for table in kinds:
        progress = await new.progress(table.kind)
        count = counted[table.kind]
        total = count.wanted + sum(count.skipped.values())
        if progress.finished_at is not None and (
            was_complete or (progress.in_source, progress.skipped) != (total, count.skipped)
        ):
            repeated.add(table.kind)
    return frozenset(repeated)


async def _import_kind(
    old: OldDatabase, new: NewDatabase, table: CopiedTable, *, say: Say, pace: Pace, counted: SourceCount
) -> None:
    progress = await new.progress(table.kind)
    pace.passed_over(progress.imported)
    if progress.finished_at is not None:
        return
    last, imported = progress.last_key, progress.imported
    try:
        while (until := await old.next_key(table, last)) is not None:
            more = await new.copy_batch(old, table, last=last, until=until)
            imported += more
            last = until
            say(pace.line(table.kind, imported, more=more, now=time.monotonic()))
        await new.finish_kind(table, counted)
    except asyncpg.PostgresError as error:
        raise ImportRefused(
            f"{table.kind} behind {last or 'the first'} could not be imported: {without_rows(error)}."
            " What came before is kept, and the same command goes on from there"
        ) from error


async def _refusing(what: str, work: Awaitable[T]) -> T:
    try:
        return await work
    except asyncpg.PostgresError as error:
        raise ImportRefused(
            f"{what} could not be compared with the old database: {without_rows(error)}. What came before is kept, and"
            " the same command begins again"
        ) from error


async def _kind_reports(
    new: NewDatabase, kinds: Sequence[CopiedTable], repeated: Mapping[str, Repeated]
) -> list[KindReport]:
    reports = []
    for table in kinds:
        progress = await new.progress(table.kind)
        again = repeated.get(table.kind, Repeated())
        reports.append(
            KindReport(
                kind=table.kind,
                in_source=progress.in_source or 0,
                imported=progress.imported,
                skipped=progress.skipped,
                in_target=progress.in_target or 0,
                left=again.left,
                named=again.named,
                gone=again.gone,
            )
        )
    return reports


async def _left_behind(old: OldDatabase, reasons: Mapping[str, str]) -> list[LeftBehind]:
    rows = await old.rows_of(reasons)
    return [LeftBehind(table=name, rows=number, reason=reasons[name]) for name, number in sorted(rows.items())]
