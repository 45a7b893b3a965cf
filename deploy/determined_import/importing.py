"""One import from beginning to end, or from where the last one was cut off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import asyncpg

from deploy.determined_import.kinds.copied import CopiedTable
from deploy.determined_import.kinds.order import chosen_kinds, reasons_left_behind
from deploy.determined_import.new_database import NewDatabase, open_new_database
from deploy.determined_import.old_database import OldDatabase, open_old_database
from deploy.determined_import.refusal import ImportRefused, without_rows
from deploy.determined_import.report import ImportReport, KindReport, LeftBehind
from deploy.determined_import.searches.continuing import continue_searches

Say = Callable[[str], None]


async def run_import(*, source_url: str, target_url: str, with_logs: bool, say: Say) -> ImportReport:
    """Import everything that is not there yet. Raises ImportRefused.

    say  told of what is going on, a line at a time
    """
    kinds = chosen_kinds(with_logs=with_logs)
    async with (
        open_old_database(source_url, kinds) as old,
        open_new_database(target_url, source=old.cluster_id, kinds=kinds) as new,
    ):
        for table in kinds:
            await _import_kind(old, new, table, say)
        await new.advance_sequences()
        unfinished = await continue_searches(target_url)
        await new.finish()
        return ImportReport(
            source=old.cluster_id,
            kinds=await _kind_reports(new, kinds),
            left_behind=await _left_behind(old, reasons_left_behind(with_logs=with_logs)),
            unfinished=unfinished,
            access_tokens=await old.access_tokens(),
        )


async def _import_kind(old: OldDatabase, new: NewDatabase, table: CopiedTable, say: Say) -> None:
    progress = await new.progress(table.kind)
    if progress.finished_at is not None:
        return
    last, imported = progress.last_key, progress.imported
    try:
        while (until := await old.next_key(table, last)) is not None:
            imported += await new.copy_batch(old, table, last=last, until=until)
            last = until
            say(f"{table.kind}: {imported}")
        await new.finish_kind(table, await old.count(table))
    except asyncpg.PostgresError as error:
        raise ImportRefused(
            f"{table.kind} behind {last or 'the first'} could not be imported: {without_rows(error)}."
            " What came before is kept, and the same command goes on from there"
        ) from error


async def _kind_reports(new: NewDatabase, kinds: Sequence[CopiedTable]) -> list[KindReport]:
    reports = []
    for table in kinds:
        progress = await new.progress(table.kind)
        reports.append(
            KindReport(
                kind=table.kind,
                in_source=progress.in_source or 0,
                imported=progress.imported,
                skipped=progress.skipped,
                in_target=progress.in_target or 0,
            )
        )
    return reports


async def _left_behind(old: OldDatabase, reasons: Mapping[str, str]) -> list[LeftBehind]:
    rows = await old.rows_of(reasons)
    return [LeftBehind(table=name, rows=number, reason=reasons[name]) for name, number in sorted(rows.items())]
